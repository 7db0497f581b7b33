"""A schedule edited by hand: it is reported, the others continue, and it can be set right or removed."""

from typing import Any

import pytest

from tests.services.parts import Listener
from tests.support.clock import ManualClock
from tests.support.timing import MINUTE, add, find, said, ticks_of
from windlass.coordinator.duties import Fire
from windlass.store.contract import Store

EDITS = [
    "changed = 'rubbish'",
    "changed = ''",
    "changed = '{}'",
    'changed = \'{"every": "often"}\'',
    "changed = replace(changed, 'UTC', 'Mars/Base')",
    "changed = replace(changed, '\"0 * * * *\"', '\"rubbish\"')",
    "changed = replace(changed, '\"priority\":3', '\"priority\":99999999999')",
    'changed = replace(changed, \'"queue":"mail"\', \'"queue":"\\u0000"\')',
    'changed = replace(changed, \'"tenant":"t"\', \'"tenant":"\\u0000"\')',
    "changed = replace(changed, '\"timeout\":5', '\"timeout\":1e30')",
    "changed = replace(changed, '\"timeout\":5', '\"run_at\":5')",
    'changed = replace(changed, \'"timeout":5\', \'"on_conflict":"raise","idempotency_window":5\')',
]


@pytest.mark.parametrize("edit", EDITS)
async def test_a_broken_schedule_holds_up_no_other_and_can_be_repaired(
    store: Store, clock: ManualClock, connection: Any, edit: str
) -> None:
    job = {"priority": 3, "queue": "mail", "tenant": "t", "timeout": 5}
    await add(store, "bad", job, cron="0 * * * *", tz="UTC", overlap=False)
    await add(store, "good", cron="0 * * * *", tz="UTC")
    before = await connection.fetchval("SELECT changed FROM windlass.schedules WHERE name = 'bad'")
    await connection.execute(f"UPDATE windlass.schedules SET {edit} WHERE name = 'bad'")
    assert await connection.fetchval("SELECT changed FROM windlass.schedules WHERE name = 'bad'") != before
    heard = Listener()
    fire = Fire(store, heard)
    for _ in range(2):
        clock.advance(60 * MINUTE)
        await fire.run()
        await fire.run()
    assert len(await ticks_of(store, "good")) == 2
    seen_to = len(await ticks_of(store, "bad")) + (await find(store, "bad")).skipped
    assert (seen_to, heard.names.count("ScheduleBroken")) in ((2, 0), (0, 1))
    assert len(await store.schedules.list()) == 2
    broken = await find(store, "bad")
    assert await store.schedules.change("bad", said(every=60), broken.changed) is not None
    clock.advance(MINUTE)
    await Fire(store, heard).run()
    assert clock.wall() in await ticks_of(store, "bad")
    assert await store.schedules.remove("bad")


async def test_what_cannot_be_read_stays_as_it_was_written_when_others_are_fired(
    store: Store, clock: ManualClock, connection: Any
) -> None:
    """It is shown again, with the mistake; what is not about settings is counted on."""
    await add(store, cron="0 * * * *")
    (whole,) = (await store.schedules.due(10)).schedules or [await find(store)]
    await connection.execute("UPDATE windlass.schedules SET declared = 'a note of mine'")
    clock.advance(60 * MINUTE)
    await Fire(store, Listener()).run()
    found = await connection.fetchrow("SELECT declared, last_at FROM windlass.schedules")
    assert tuple(found) == ("a note of mine", clock.wall())
    assert (await find(store)).changed == whole.changed
