"""The alerts that `top` and `doctor` name are those of the rules, with their thresholds."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
import yaml

from tests.meta.tree import ROOT
from tests.support.seed import worker_info
from windlass.core.moments import SECOND, to_micros
from windlass.core.schedules.schedule import Schedule
from windlass.core.stats.meter import Meter, Recent, histogram, interval_of
from windlass.observe import alerts
from windlass.observe.alerts import AlertFacts, examine_alerts, find_alerts
from windlass.store.doctor import Census, Examination, Level, Waiting, problem, warning

NOW = to_micros(datetime(2026, 1, 2, 12, tzinfo=UTC))
RULES = {
    rule["alert"]: rule
    for group in yaml.safe_load((ROOT / "deploy/prometheus/rules.yml").read_text())["groups"]
    for rule in group["rules"]
    if "alert" in rule
}


WAIT_BUDGET = next(
    rule["expr"]
    for group in yaml.safe_load((ROOT / "deploy/prometheus/rules.yml").read_text())["groups"]
    for rule in group["rules"]
    if rule.get("alert") == "WindlassWaitBudget"
)
"""The first of its rules: the last hour and five minutes."""


def schedule(name: str, late: int, **more: Any) -> Schedule:
    moment = datetime(2026, 1, 2, 12, tzinfo=UTC)
    next_at = moment - timedelta(seconds=late)
    return Schedule(name=name, created_at=moment - timedelta(days=1), next_at=next_at, **more)


def test_the_thresholds_are_those_of_the_rules() -> None:
    assert float(re.findall(r"> (\d+) unless", RULES["WindlassQueueWaits"]["expr"])[0]) == alerts.MAX_WAIT
    share, least = re.findall(r"> ([\d.]+)\s+and .* \* 300 >= (\d+)", RULES["WindlassDeadJobs"]["expr"])[0]
    assert (float(share), int(least)) == (alerts.MAX_DEAD_SHARE, alerts.MIN_DEAD)
    assert int(re.findall(r"> (\d+)$", RULES["WindlassScheduleOverdue"]["expr"])[0]) * SECOND == alerts.OVERDUE
    assert f"> {alerts.MAX_SLOW_SHARE / 0.01:g} * 0.01" in WAIT_BUDGET


def alerts_of(**more: Any) -> list[tuple[str, str]]:
    """What would fire in a store with these facts, and nothing else to be said of it."""
    healthy: dict[str, Any] = {
        "oldest": {},
        "paused": (),
        "pending": 0,
        "workers": (worker_info(types=("t",)),),
        "coordinator": "w",
        "parked_types": (),
        "schedules": (),
        "recent": Recent(NOW, ()),
    }
    return [(each.name, each.says) for each in find_alerts(AlertFacts(**{**healthy, **more}))]


def test_a_healthy_store_has_no_alert() -> None:
    assert alerts_of() == []


def test_a_queue_that_waits_is_named_unless_it_is_paused() -> None:
    workers = [worker_info(queues=("mail", "quick"))]
    waits = {"mail": 301.0, "held": 900.0, "quick": 300.0}
    assert alerts_of(oldest=waits, paused={"held"}, workers=workers) == [
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
    assert alerts_of(recent=Recent(NOW, tuple(meters))) == [("WindlassDeadJobs", "10% of bad in q die")]


@pytest.mark.parametrize(("slow", "earlier"), [(15, 0), (14, 0), (15, 900)])
def test_slow_starts_are_named_if_they_are_many_in_an_hour_and_in_five_minutes(slow: int, earlier: int) -> None:
    waits = histogram([61 * SECOND] * slow + [1] * (100 - slow))
    meters = [
        Meter(queue="q", type="t", interval_start=interval_of(NOW), wait=waits),
        Meter(queue="q", type="t", interval_start=interval_of(NOW - 1800 * SECOND), wait=histogram([1] * earlier)),
    ]
    found = alerts_of(recent=Recent(NOW, tuple(meters)))
    expected = ("WindlassWaitBudget", "15% of attempts start later than 1m")
    assert found == ([expected] if (slow, earlier) == (15, 0) else [])


def test_an_overdue_schedule_is_named_unless_it_is_paused() -> None:
    found = [schedule("daily", 61), schedule("held", 99, paused=True), schedule("soon", 59)]
    assert ("WindlassScheduleOverdue", "daily is 1m 1s overdue") in alerts_of(schedules=found)
    assert len([name for name, _ in alerts_of(schedules=found) if name == "WindlassScheduleOverdue"]) == 1


def test_waiting_jobs_without_a_worker_or_coordinator_are_named() -> None:
    names = [name for name, _ in alerts_of(pending=3, workers=(), coordinator=None)]
    assert names == ["WindlassNoWorkers", "WindlassNoCoordinator"]
    assert alerts_of(workers=(), coordinator=None) == [], "a store that is not in use needs none"


def test_types_that_no_worker_knows_are_named() -> None:
    assert alerts_of(parked_types=["strange", "t"]) == [("WindlassTypeWithoutWorker", "no live worker knows strange")]


def test_queues_that_no_worker_serves_are_named_unless_they_are_paused_or_no_worker_is_alive() -> None:
    waiting = {"default": 1.0, "mail": 0.0, "held": 9.0}
    assert alerts_of(oldest=waiting, paused={"held"}) == [
        ("WindlassQueueWithoutWorker", "jobs wait in mail, and no live worker serves it")
    ]
    assert "WindlassQueueWithoutWorker" not in dict(alerts_of(oldest=waiting, pending=3, workers=()))


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
        "oldest": {},
        "recent": Recent(NOW, ()),
    }
    return Census(**{**about, **more})


def test_the_doctor_names_what_would_fire() -> None:
    parked = Waiting(queue="q", type="strange", jobs=2, due=False, parked=True)
    waiting = Waiting(queue="q", type="t", jobs=2, due=True)
    waits, dead = histogram([61 * SECOND] * 9), Meter(queue="q", type="t", interval_start=interval_of(NOW), dead=9)
    counted = census(
        coordinator=None,
        workers=(),
        waiting=(parked, waiting),
        schedules=(schedule("daily", 120),),
        oldest={"q": 301 * SECOND},
        recent=Recent(NOW, (dead, Meter(queue="q", type="t", interval_start=interval_of(NOW), wait=waits))),
    )
    found = examine_alerts(Examination((), counted))
    assert found.level is Level.WARNING
    elsewhere = msgspec.structs.replace(counted, workers=(worker_info(),))
    says = found.says + examine_alerts(Examination((), elsewhere)).says
    assert set(re.findall(r"Windlass\w+", says)) == RULES.keys() - ONLY_PROMETHEUS - {"WindlassStoreAway"}


ONLY_PROMETHEUS = {"WindlassRescues", "WindlassStaleSettlements", "WindlassMetricsAbsent"}
"""Counted by processes, or about the scraping itself."""


def test_the_doctor_is_content_when_nothing_would_fire() -> None:
    assert examine_alerts(Examination((), census())).level is Level.OK


def test_a_store_that_cannot_be_read_is_away_and_one_that_is_not_made_yet_is_not() -> None:
    assert "WindlassStoreAway" in examine_alerts(Examination((problem("server", "x", "y"),), None)).says
    assert examine_alerts(Examination((warning("schema", "x", "y"),), None)).level is Level.OK
