"""Scenes of schedules: a tick's job and the way to the next tick are written together, or not at all."""

from typing import Any

from tests.support.clock import START, ManualClock
from tests.support.timing import MINUTE, add, said
from tests.torture.scene import Scene
from windlass.core.schedules.firing import Fired, Firing, firing, new_schedule
from windlass.core.schedules.schedule import ScheduleSettings
from windlass.store.contract import Store


def _a_minute(clock: ManualClock) -> None:
    clock.advance(MINUTE)


async def _made(store: Store) -> None:
    await add(store)


async def _made_alone(store: Store) -> None:
    await add(store, overlap=False)


async def _paused(store: Store) -> None:
    await _made(store)
    await store.schedules.pause("s")


def _decided(options: dict[str, Any]) -> Firing:
    """What any process decides at the first tick."""
    return firing(new_schedule("s", START, declared=ScheduleSettings(), changed=said(**options)), START + MINUTE)


async def _fire(store: Store) -> list[Fired]:
    return await store.schedules.fire([_decided({})])


async def _fire_alone(store: Store) -> list[Fired]:
    return await store.schedules.fire([_decided({"overlap": False})])


TICKS = [
    Scene(verb="add", name="add, a schedule", act=lambda store: store.schedules.add("s", said())),
    Scene(
        verb="change",
        name="change of a schedule",
        before=_made,
        act=lambda store: store.schedules.change("s", said(every=5), said()),
    ),
    Scene(verb="pause", name="pause of a schedule", before=_made, act=lambda store: store.schedules.pause("s")),
    Scene(verb="resume", name="resume of a schedule", before=_paused, act=lambda store: store.schedules.resume("s")),
    Scene(verb="remove", name="remove, a schedule", before=_made, act=lambda store: store.schedules.remove("s")),
    Scene(verb="fire", name="fire, a tick", before=_made, later=_a_minute, act=_fire),
    Scene(verb="fire", name="fire, one that runs alone", before=_made_alone, later=_a_minute, act=_fire_alone),
]
