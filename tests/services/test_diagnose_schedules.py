"""What the doctor says of schedules."""

from typing import Any

import pytest

from tests.services.test_diagnose import NOW, census, said, trouble
from tests.support.seed import new_job, worker_info
from windlass.core.moments import SECOND, to_datetime
from windlass.core.schedules.firing import new_schedule
from windlass.core.schedules.schedule import Schedule, ScheduleSettings, settings
from windlass.observe.doctor import diagnose
from windlass.store.doctor import Level


def every_minute(name: str = "s", *, made_ago: int = 0, paused: bool = False, **job: Any) -> Schedule:
    """One that was never fired since it was made."""
    said = settings(new_job(**job), every=60)
    found = new_schedule(name, NOW - made_ago * SECOND, declared=said, changed=ScheduleSettings())
    return Schedule(name=name, declared=said, created_at=found.created_at, next_at=found.next_at, paused=paused)


NOBODY = {"workers": (), "coordinator": None}


@pytest.mark.parametrize(
    ("schedule", "fields", "expected"),
    [
        (every_minute(), {}, []),
        (every_minute(made_ago=69), NOBODY, [(Level.NOTE, "workers")]),
        (every_minute(made_ago=71), NOBODY, [(Level.NOTE, "workers"), (Level.PROBLEM, "schedules")]),
        (every_minute(made_ago=119), {}, []),
        (every_minute(made_ago=121), {}, [(Level.WARNING, "schedules")]),
        (every_minute(made_ago=121, paused=True), {}, []),
        (every_minute(type="x"), {}, [(Level.PROBLEM, "schedules")]),
        (every_minute(type="x"), NOBODY, [(Level.NOTE, "workers")]),
        (every_minute(queue="mail"), {}, [(Level.PROBLEM, "schedules")]),
        (every_minute(queue="mail"), {"workers": (worker_info(queues=("default", "mail")),)}, []),
        (Schedule(name="s", created_at=to_datetime(NOW)), {}, [(Level.PROBLEM, "schedules")]),
    ],
)
def test_each_trouble_is_found_and_no_other(
    schedule: Schedule, fields: dict[str, Any], expected: list[tuple[Level, str]]
) -> None:
    assert trouble(census(schedules=(schedule,), **fields)) == expected


def test_sentences_name_the_schedules_and_say_why() -> None:
    late = tuple(every_minute(f"s{number}", made_ago=360) for number in range(7))
    assert said(census(schedules=late, coordinator=None)).endswith(
        "s0, s1, s2, s3, s4 and 2 more are overdue, by up to 5m, and there is no coordinator"
    )
    assert said(census(schedules=(every_minute(type="x"),))) == "no live worker knows the type of the jobs of s (x)"
    assert said(census(schedules=(every_minute(queue="q"),))) == "no live worker serves the queue of s (q)"
    broken = tuple(Schedule(name=f"s{number}", created_at=to_datetime(NOW)) for number in range(7))
    lines = said(census(schedules=broken)).splitlines()
    assert lines[0].startswith("s0 is broken, and enqueues nothing: schedule: needs its times")
    assert (len(lines), lines[-1]) == (6, "2 more are broken")


def test_what_is_well_is_counted() -> None:
    reported = diagnose(census(schedules=(every_minute("a"), every_minute("b", paused=True))), NOW)
    assert [each.says for each in reported if each.check == "schedules"] == ["2, 1 of them paused"]
