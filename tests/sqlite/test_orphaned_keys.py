"""The doctor finds idempotency keys that nothing will ever free."""

import sqlite3
from pathlib import Path

from tests.support.seed import enqueue_one, put
from windlass.core.status import Status
from windlass.store.doctor import KEY_CHECK, Level
from windlass.store.open import examine, open_store


async def test_in_depth_keys_that_nothing_will_ever_free_are_found(tmp_path: Path) -> None:
    path = tmp_path / "jobs.db"
    store = open_store(f"sqlite:///{path}")
    await enqueue_one(store, idempotency_key="alive")
    ended = await put(store, Status.CANCELLED)
    await store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO windlass_idempotency_keys VALUES ('default', 'ff', ?, NULL)", (ended,))
    connection.close()
    (found,) = [each for each in (await examine(store.address, deep=True)).findings if each.check == KEY_CHECK]
    assert (found.level, ended in found.says) == (Level.PROBLEM, True)
    with sqlite3.connect(path) as connection:
        assert connection.execute(str(found.advice).removeprefix("free the key: ")).rowcount == 1
    connection.close()
    (found,) = [each for each in (await examine(store.address, deep=True)).findings if each.check == KEY_CHECK]
    assert found.says == "each of 1 keys belongs to a live job, or to a window that is open"
