"""When a waiting job may start: by what is before it, and how fast its queue moves."""

from typing import Any

from tests.unit.test_why import NOW, WORKERS, around, job, limited, moment
from windlass.core.flow.rate import TokenBucket, parse_rate
from windlass.core.jobs.change import WAITING_FOR_KEY
from windlass.core.moments import SECOND
from windlass.core.stats.meter import INTERVAL, histogram, interval_of
from windlass.core.status import Status
from windlass.core.why.estimate import Estimate, estimate
from windlass.core.why.facts import Count, QueuePosition, Throughput, WhyFacts, WorkerSummary

BUSY = WorkerSummary(alive=1, know=1, serve=1, able=1, slots=10, busy=10)


def steady(per_slot: int, slots: int = 30) -> Throughput:
    """As many in each of the last slots that are over."""
    return Throughput({interval_of(NOW) - n * INTERVAL: per_slot for n in range(1, slots + 1)})


def behind(jobs: int, **facts: Any) -> WhyFacts:
    given = {"position": QueuePosition(ahead=Count(jobs)), "workers": BUSY, "throughput": steady(1000)}
    return around(job(), **{**given, **facts})


def seconds(at: int | None) -> float:
    assert at is not None
    return (at - NOW) / SECOND


def within(found: Estimate, low: float, high: float) -> bool:
    return low <= seconds(found.earliest) <= seconds(found.start) <= seconds(found.latest) <= high


def test_what_is_before_it_goes_at_the_measured_pace() -> None:
    found = estimate(behind(5_000))
    assert round(seconds(found.start), 1) == 50.0
    assert within(found, 40, 60)
    assert found.basis == "3,000 of its queue ended in 30s"


def test_few_measured_make_a_wide_range() -> None:
    sure, unsure = (
        estimate(behind(100)),
        estimate(behind(100, throughput=Throughput({interval_of(NOW) - INTERVAL: 10}))),
    )
    width = [seconds(each.latest) - seconds(each.earliest) for each in (sure, unsure)]
    assert width[1] > 10 * width[0]


def test_the_slot_in_which_the_work_began_is_not_taken_for_a_whole_one() -> None:
    pace = Throughput(
        {
            interval_of(NOW) - 3 * INTERVAL: 10,
            interval_of(NOW) - 2 * INTERVAL: 1000,
            interval_of(NOW) - INTERVAL: 1000,
        }
    )
    assert round(seconds(estimate(behind(1_000, throughput=pace)).start), 1) == 10.0


def test_what_was_fast_and_is_slow_now_goes_as_it_does_now_and_may_be_faster_again() -> None:
    pace = Throughput({interval_of(NOW) - n * INTERVAL: (100 if n <= 3 else 1000) for n in range(1, 31)})
    found = estimate(behind(1_000, throughput=pace))
    assert round(seconds(found.start)) == 100
    assert seconds(found.earliest) < 11


def test_nothing_that_ended_lately_is_no_ground_for_an_estimate() -> None:
    found = estimate(behind(50, throughput=Throughput()))
    assert (found.start, found.latest) == (None, None)
    assert found.basis == "nothing of its queue ended in the last five minutes"


def test_when_things_have_come_to_rest_there_is_no_latest() -> None:
    found = estimate(behind(100, throughput=Throughput({interval_of(NOW) - 20 * INTERVAL: 1000})))
    assert found.latest is None


def test_free_workers_take_at_once_what_they_can_take() -> None:
    assert within(estimate(around(job())), 0, 2)
    assert within(estimate(behind(9, workers=WORKERS, throughput=Throughput())), 0, 2)
    assert estimate(behind(10, workers=WORKERS, throughput=Throughput())).start is None


def test_free_workers_do_not_help_where_the_queue_is_at_its_limit() -> None:
    facts = around(job(), queue=limited(max_concurrency=2), position=QueuePosition(running=Count(2)))
    assert estimate(facts).start is None


def test_more_before_it_than_are_counted_give_only_an_earliest() -> None:
    found = estimate(
        around(
            job(), position=QueuePosition(ahead=Count(10_000, at_least=True)), workers=BUSY, throughput=steady(1000)
        )
    )
    assert (found.start, found.latest) == (None, None)
    assert seconds(found.earliest) > 80
    assert "more jobs wait before it than are counted" in (found.basis or "")


def test_a_rate_lets_it_start_only_when_those_before_it_have_paid() -> None:
    queue = limited(rate_limit=parse_rate("1/s", "rate"))
    found = estimate(behind(99, queue=queue, queue_token_bucket=TokenBucket(0, SECOND, NOW)))
    assert seconds(found.earliest) == 100
    assert "its rate limit lets it start no sooner" in (found.basis or "")


def test_in_a_fair_queue_its_own_tenants_jobs_count_and_a_turn_of_each_other() -> None:
    place = QueuePosition(
        ahead=Count(9_000), same_tenant=Count(10), same_priority=Count(9_010), tenants=("big", "small")
    )
    found = estimate(
        around(job(tenant="small"), queue=limited(fair=True), position=place, workers=BUSY, throughput=steady(100))
    )
    assert 1 <= seconds(found.start) <= 3


def test_a_weight_gives_a_tenant_more_turns() -> None:
    place = QueuePosition(
        ahead=Count(9_000), same_tenant=Count(100), same_priority=Count(9_010), tenants=("big", "small")
    )

    def start(weight: float) -> float:
        queue = limited(fair=True, weights={"small": weight})
        facts = around(job(tenant="small"), queue=queue, position=place, workers=BUSY, throughput=steady(100))
        return seconds(estimate(facts).start)

    assert start(4.0) < start(1.0) < start(0.25)


def test_those_that_wait_for_a_key_before_it_run_one_after_the_other() -> None:
    its = job(Status.BLOCKED, reason=WAITING_FOR_KEY, concurrency_key="k", key_limit=1)
    place = QueuePosition(ahead_for_key=Count(4), slots=Count(1))
    found = estimate(around(its, position=place, typical_duration=histogram([2 * SECOND] * 100)))
    assert 10 < seconds(found.start) < 11.5, "a worker is free: from one to the next it takes no time to speak of"
    assert within(found, 7, 20)
    assert found.basis == "workers have free slots for it and for all jobs before it; its type takes 2s"
    assert estimate(around(its, position=place)).start is None
    assert "nothing of its type ended in the last hour" in (estimate(around(its, position=place)).basis or "")


def test_what_is_not_due_starts_when_it_is() -> None:
    found = estimate(around(job(Status.SCHEDULED, run_at=moment(60))))
    assert within(found, 60, 62)
    assert "assuming that as many jobs wait when it is due" in (found.basis or "")


def test_in_the_first_seconds_the_slots_and_the_usual_time_tell_more_than_what_has_ended() -> None:
    facts = behind(
        400, throughput=Throughput({interval_of(NOW) - INTERVAL: 20}), typical_duration=histogram([SECOND // 4] * 20)
    )
    assert round(seconds(estimate(facts).start)) == 100, "as if it had gone on for half of the slot"
    place = QueuePosition(ahead=Count(400), running=Count(15))
    found = estimate(
        around(
            job(), position=place, workers=BUSY, throughput=facts.throughput, typical_duration=facts.typical_duration
        )
    )
    assert 10 <= seconds(found.start) <= 11, "ten slots, four a second each"
    assert within(found, 2, 1000)
    assert found.basis == "its queue has just started: from its busy slots and the usual duration of type t"
