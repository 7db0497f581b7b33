"""A schedule edited by hand: it is reported, the others continue, and it can be set right or removed."""

from pathlib import Path

import apsw
import pytest

from tests.services.parts import Listener
from tests.support.clock import ManualClock
from tests.support.timing import MINUTE, add, find, said, ticks_of
from windlass.coordinator.duties import Fire
from windlass.store.open import open_store

EDITS = [
    "changed = 'rubbish'",
    "changed = '{}'",
    'changed = \'{"every": "often"}\'',
    "changed = replace(changed, 'UTC', 'Mars/Base')",
    "changed = replace(changed, '\"0 * * * *\"', '\"rubbish\"')",
]


@pytest.mark.parametrize("edit", EDITS)
async def test_a_broken_schedule_holds_up_no_other_and_can_be_repaired(
    tmp_path: Path, clock: ManualClock, edit: str
) -> None:
    store = open_store(f"sqlite:///{tmp_path}/jobs.db?durability=relaxed", clock=clock)
    await add(store, "bad", cron="0 * * * *", tz="UTC")
    await add(store, "good", cron="0 * * * *", tz="UTC")
    with apsw.Connection(f"{tmp_path}/jobs.db") as connection:
        connection.execute(f"UPDATE windlass_schedules SET {edit} WHERE name = 'bad'")
    clock.advance(60 * MINUTE)
    heard = Listener()
    fire = Fire(store, heard)
    await fire.run()
    await fire.run()
    assert await ticks_of(store, "good") == [clock.wall()]
    assert len(await ticks_of(store, "bad")) + heard.names.count("ScheduleBroken") == 1
    assert len(await store.schedules.list()) == 2
    broken = await find(store, "bad")
    assert await store.schedules.change("bad", said(every=60), broken.changed) is not None
    clock.advance(MINUTE)
    await Fire(store, heard).run()
    assert clock.wall() in await ticks_of(store, "bad")
    assert await store.schedules.remove("bad")
    await store.close()
