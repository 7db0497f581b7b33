"""The alerts that `top` and `doctor` name are those of the rules, with their thresholds."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from tests.meta.tree import ROOT
from tests.support.seed import worker_info
from windlass.core.moments import SECOND, to_micros
from windlass.core.schedules.schedule import Schedule
from windlass.core.stats.meter import Meter, Recent, interval_of
from windlass.observe import alerts
from windlass.observe.alerts import census_alerts, dead_alerts, queue_alerts, schedule_alerts, worker_alerts
from windlass.store.doctor import Census, Level, Waiting

NOW = to_micros(datetime(2026, 1, 2, 12, tzinfo=UTC))
RULES = {
    rule["alert"]: rule
    for group in yaml.safe_load((ROOT / "deploy/prometheus/rules.yml").read_text())["groups"]
    for rule in group["rules"]
    if "alert" in rule
}


def schedule(name: str, late: int, **more: Any) -> Schedule:
    moment = datetime(2026, 1, 2, 12, tzinfo=UTC)
    next_at = moment - timedelta(seconds=late)
    return Schedule(name=name, created_at=moment - timedelta(days=1), next_at=next_at, **more)


def test_the_thresholds_are_those_of_the_rules() -> None:
    assert float(re.findall(r"> (\d+) unless", RULES["WindlassQueueWaits"]["expr"])[0]) == alerts.MAX_WAIT
    share, least = re.findall(r"> ([\d.]+)\s+and .* \* 300 >= (\d+)", RULES["WindlassDeadJobs"]["expr"])[0]
    assert (float(share), int(least)) == (alerts.MAX_DEAD_SHARE, alerts.MIN_DEAD)
    assert int(re.findall(r"> (\d+)$", RULES["WindlassScheduleOverdue"]["expr"])[0]) * SECOND == alerts.OVERDUE


def test_a_queue_that_waits_is_named_unless_it_is_paused() -> None:
    found = list(queue_alerts({"mail": 301.0, "held": 900.0, "quick": 300.0}, {"held"}))
    assert [(each.name, each.says) for each in found] == [
        ("WindlassQueueWaits", "the oldest job of mail has waited 5m 1s")
    ]


def test_a_type_that_dies_often_is_named_and_a_rare_one_is_not() -> None:
    at = interval_of(NOW)
    meters = [
        Meter(queue="q", type="bad", interval_start=at, completed=45, dead=5),
        Meter(queue="q", type="good", interval_start=at, completed=995, dead=5),
        Meter(queue="q", type="rare", interval_start=at, dead=4),
        Meter(queue="q", type="past", interval_start=at - 600 * SECOND, dead=400),
    ]
    assert [each.says for each in dead_alerts(Recent(NOW, tuple(meters)))] == ["10% of bad in q die"]


def test_an_overdue_schedule_is_named_unless_it_is_paused() -> None:
    found = schedule_alerts([schedule("daily", 61), schedule("held", 99, paused=True), schedule("soon", 59)], NOW)
    assert [each.says for each in found] == ["daily is 1m 1s overdue"]


def test_waiting_jobs_without_a_worker_are_named() -> None:
    assert [each.name for each in worker_alerts([], 3)] == ["WindlassNoWorkers"]
    assert list(worker_alerts([worker_info()], 3)) == list(worker_alerts([], 0)) == []


def census(**more: Any) -> Census:
    about: dict[str, Any] = {
        "now": NOW,
        "newest": NOW,
        "workers": (worker_info(types=("t",)),),
        "waiting": (),
        "counted_all": True,
        "paused": (),
        "dead": 0,
        "late_runners": 0,
        "late_jobs": 0,
        "coordinator": "w",
        "schedules": (),
    }
    return Census(**{**about, **more})


def test_the_doctor_names_what_would_fire() -> None:
    parked = Waiting(queue="q", type="strange", jobs=2, due=False, parked=True)
    waiting = Waiting(queue="q", type="t", jobs=2, due=True)
    (found,) = census_alerts(
        census(coordinator=None, workers=(), waiting=(parked, waiting), schedules=(schedule("daily", 120),))
    )
    names = re.findall(r"Windlass\w+", found.says)
    assert found.level is Level.WARNING
    expected = {"WindlassNoWorkers", "WindlassScheduleOverdue", "WindlassNoCoordinator", "WindlassTypeWithoutWorker"}
    assert set(names) == expected
    assert set(names) <= RULES.keys()


def test_the_doctor_is_content_when_nothing_would_fire() -> None:
    (found,) = census_alerts(census())
    assert found.level is Level.OK
