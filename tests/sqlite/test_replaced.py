"""The database or its turn file is deleted or replaced while a store has it open: no job is lost in silence."""

from pathlib import Path

import pytest

from tests.sqlite.children import HOLD_TURN, Child
from tests.sqlite.conftest import Connect, Open
from tests.support.seed import enqueue_one, status_of
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.sqlite.address import Driver, connection_class
from windlass.store.sqlite.connection.write_turn import WriteTurn
from windlass.store.sqlite.db import Db


def remove(path: Path) -> None:
    """The database with its log."""
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink()


async def test_a_write_during_which_the_file_is_deleted_is_in_doubt(opens: Open, path: Path) -> None:
    store = opens()
    await enqueue_one(store)

    def work(db: Db) -> None:
        db.run("drop_worker", {"id": "nobody"})
        remove(path)

    with pytest.raises(StoreUnavailable, match="was deleted or replaced during a write") as caught:
        await store._threads.write(work, None)
    assert caught.value.maybe_done
    # A second try means the new file.
    id_ = await enqueue_one(store)
    assert await status_of(store, id_) is Status.PENDING


async def test_a_file_that_is_replaced_while_it_is_being_opened_does_not_pass_for_the_new_one(
    path: Path, driver: Driver, connects: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    connects().close()
    kind = connection_class(driver)

    def replace(self: object, synchronous: str) -> None:
        path.rename(path.with_name("old.db"))
        path.touch()

    monkeypatch.setattr(kind, "_prepare", replace)
    connection = kind(path, synchronous="NORMAL", writes=True)
    assert connection.was_replaced()
    connection.close()


async def test_commits_are_seen_in_a_file_that_has_replaced_the_old_one(opens: Open, path: Path) -> None:
    watcher, writer = opens(), opens()
    await enqueue_one(writer)
    await watcher.operator.counts()
    watch = watcher._threads.commits
    watch.version()
    remove(path)
    with pytest.raises(StoreUnavailable):
        await enqueue_one(writer)
    await enqueue_one(writer)
    mark = watch.version()
    await enqueue_one(writer)
    assert watch.version() != mark


async def test_writers_take_turns_by_the_new_file_when_the_turn_file_was_deleted(opens: Open, path: Path) -> None:
    store = opens()
    await enqueue_one(store)
    path.with_name(path.name + "-turn").unlink()
    with Child(HOLD_TURN, f"{path}-turn"), pytest.raises(StoreUnavailable, match="did not answer"):
        await enqueue_one(store.with_timeout(0.1))
    id_ = await enqueue_one(store)
    assert await status_of(store, id_) is Status.PENDING


def test_a_caller_without_an_event_loop_notices_that_the_turn_file_was_deleted(path: Path) -> None:
    turn = WriteTurn(path, first=True)
    assert turn.try_take()
    turn.leave()
    turn.file.unlink()
    assert not turn.try_take()
    turn.take()
    turn.leave()
    assert turn.try_take()
    turn.leave()
    turn.close()
