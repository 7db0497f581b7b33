"""The turn: writers of several processes queue up, and the dead delay none."""

import asyncio
from pathlib import Path

from tests.sqlite.children import HOLD_TURN, Child
from tests.sqlite.conftest import Open
from tests.support.seed import enqueue_one, status_of
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.store.records import ProcessRole


async def refused(opens: Open, first: bool = False) -> bool:
    """Whether a write has no answer for a while, and is certain that nothing was done."""
    try:
        opener = ProcessRole.SUPERVISOR if first else ProcessRole.CLIENT
        await enqueue_one(opens(opener=opener).with_timeout(0.1))
    except StoreUnavailable as error:
        return not error.maybe_done
    return False


async def test_a_writer_waits_while_another_process_has_the_turn_and_writes_after_it(opens: Open, path: Path) -> None:
    store = opens()
    await store.migrate()
    with Child(HOLD_TURN, f"{path}-turn") as other:
        assert await refused(opens)
        call = asyncio.create_task(enqueue_one(store))
        other.leave()
        assert await status_of(store, await call) is Status.PENDING


async def test_the_turn_of_a_killed_process_passes_on(opens: Open, path: Path) -> None:
    await opens().migrate()
    with Child(HOLD_TURN, f"{path}-turn") as other:
        other.kill()
        assert not await refused(opens)


async def test_readers_need_no_turn(opens: Open, path: Path) -> None:
    store = opens()
    id_ = await enqueue_one(store)
    with Child(HOLD_TURN, f"{path}-turn"):
        assert await status_of(store, id_) is Status.PENDING
        assert (await store.operator.counts()).totals["pending"] == 1


async def test_a_supervisor_does_not_wait_behind_other_writers(opens: Open, path: Path) -> None:
    await opens().migrate()
    with Child(HOLD_TURN, f"{path}-writers"):
        assert await refused(opens)
        assert not await refused(opens, first=True)


async def test_stores_of_one_process_take_turns_too(opens: Open) -> None:
    stores = [opens() for _ in range(4)]
    ids = await asyncio.gather(*(enqueue_one(store) for store in stores for _ in range(25)))
    assert len(set(ids)) == 100
    assert None not in await stores[0].operator.get(ids)
