"""What a census means to the doctor."""

from typing import Any

import pytest

from tests.support.seed import worker_info
from windlass.core.moments import SECOND
from windlass.core.stats.meter import Recent
from windlass.observe.doctor import diagnose, totals
from windlass.store.doctor import Census, Finding, Level, Waiting

NOW = 1_767_225_600 * SECOND


def census(**fields: Any) -> Census:
    """Healthy: one worker, nothing waits; unless said otherwise."""
    given = {"workers": (worker_info(),), "waiting": (), "paused": (), "dead": 0, "coordinator": "w1"}
    counted = {"now": NOW, "newest": NOW, "counted_all": True, "late_runners": 0, "late_jobs": 0, "schedules": ()}
    last = {"oldest": {}, "recent": Recent(NOW, ())}
    return Census(**{**counted, **last, **given, **fields})


def waits(jobs: int = 1, type: str = "t", queue: str = "default", due: bool = True) -> Waiting:
    return Waiting(queue=queue, type=type, jobs=jobs, due=due)


def trouble(found: Census, here: int = NOW) -> list[tuple[Level, str]]:
    return [(each.level, each.check) for each in diagnose(found, here) if each.level is not Level.OK]


def said(found: Census) -> str:
    return "\n".join(each.says for each in diagnose(found, NOW) if each.level is Level.PROBLEM)


def test_a_healthy_census_is_all_well_and_says_what_was_looked_at() -> None:
    findings = diagnose(census(waiting=(waits(5),)), NOW)
    assert [each.level for each in findings] == [Level.OK] * len(findings)
    assert [each.check for each in findings] == [
        "clock",
        "workers",
        "leases",
        "types",
        "queues",
        "schedules",
        "dead letters",
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"workers": (), "coordinator": None}, [(Level.NOTE, "workers")]),
        ({"workers": (), "coordinator": None, "waiting": (waits(due=False),)}, [(Level.NOTE, "workers")]),
        ({"workers": (), "coordinator": None, "waiting": (waits(),)}, [(Level.PROBLEM, "workers")]),
        ({"workers": (worker_info(draining=True),), "waiting": (waits(),)}, [(Level.PROBLEM, "workers")]),
        ({"waiting": (waits(type="x"),)}, [(Level.PROBLEM, "types")]),
        ({"waiting": (waits(type="x", due=False),)}, [(Level.PROBLEM, "types")]),
        ({"waiting": (waits(queue="mail"),)}, [(Level.PROBLEM, "queues")]),
        ({"waiting": (waits(),), "paused": ("default",)}, [(Level.WARNING, "queues")]),
        ({"paused": ("default",)}, []),
        ({"dead": 3}, [(Level.WARNING, "dead letters")]),
        ({"late_runners": 1, "late_jobs": 2}, [(Level.WARNING, "leases")]),
        ({"coordinator": None}, [(Level.WARNING, "coordinator")]),
        ({"newest": NOW + 59 * SECOND}, []),
        ({"newest": NOW + 61 * SECOND}, [(Level.PROBLEM, "clock")]),
        ({"newest": None}, []),
    ],
)
def test_each_trouble_is_found_and_no_other(fields: dict[str, Any], expected: list[tuple[Level, str]]) -> None:
    assert trouble(census(**fields)) == expected


def test_a_late_lease_is_a_problem_when_nothing_rescues() -> None:
    found = census(workers=(), coordinator=None, late_runners=2, late_jobs=1)
    assert (Level.PROBLEM, "leases") in trouble(found)
    assert "2 runners ended without a word, holding 1 job, and there is no coordinator" in said(found)


def test_a_store_whose_clock_is_not_ours_is_a_warning() -> None:
    assert trouble(census(), NOW + 4 * SECOND) == []
    for here in (NOW - 6 * SECOND, NOW + 6 * SECOND):
        assert trouble(census(), here) == [(Level.WARNING, "clock")]


def test_jobs_without_a_worker_are_named_with_their_number_and_type() -> None:
    found = census(waiting=(waits(7, "x"), waits(1, "x", due=False), waits(1, "y"), waits(3)))
    assert "8 jobs of type 'x' wait, and no live worker knows that type" in said(found)
    assert "1 job of type 'y' waits, and" in said(found)
    assert "'t'" not in said(found)


def test_a_parked_job_could_not_run_now_and_is_reported_with_its_type() -> None:
    parked = Waiting(queue="default", type="welcom", jobs=1, due=False, parked=True)
    found = census(workers=(), coordinator=None, waiting=(parked,))
    assert trouble(found) == [(Level.NOTE, "workers"), (Level.PROBLEM, "types")]
    assert said(found) == "1 job of type 'welcom' is blocked: no worker knew that type"
    assert "could run now" not in said(found)


def test_a_parked_job_is_reported_once_where_workers_are_alive() -> None:
    parked = Waiting(queue="default", type="welcom", jobs=2, due=False, parked=True)
    assert said(census(waiting=(parked,))) == "2 jobs of type 'welcom' wait, and no live worker knows that type"


def test_jobs_that_were_not_all_counted_are_at_least_that_many() -> None:
    assert "at least 20,000 jobs of type 'x'" in said(census(waiting=(waits(20_000, "x"),), counted_all=False))


def test_a_queue_and_a_type_that_are_known_to_different_workers_only_are_a_problem() -> None:
    workers = (worker_info("w1", queues=("mail",), types=("a",)), worker_info("w2", queues=("images",), types=("b",)))
    found = census(workers=workers, waiting=(waits(type="b", queue="mail"),))
    assert trouble(found) == [(Level.PROBLEM, "queues")]
    assert "jobs of type 'b' wait in queue 'mail'; the workers that serve it do not know the type" in said(found)


def test_all_troubles_are_listed_together_each_with_what_to_do() -> None:
    waiting = (waits(type="x"), waits(type="y"), waits(queue="mail"), waits(queue="images"))
    found = diagnose(census(waiting=waiting, dead=1, paused=("images",), newest=NOW * 2), NOW)
    assert totals(found)[Level.PROBLEM] == 5
    assert totals(found)[Level.WARNING] == 2
    assert [each for each in found if each.level is not Level.OK and not each.advice] == []
    assert isinstance(found[0], Finding)
