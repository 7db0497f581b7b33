"""The toll: jobs pay in their order, from the buckets of their queue and of their keys."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.runners import within_rate
from windlass.core.flow.rate import Bucket, Rate, full, spent
from windlass.core.flow.rate_check import RateBuckets, StartCost, Throttled, check_rates
from windlass.core.moments import DAY, SECOND, Micros

RATE = Rate(10, SECOND, 2)
STEP: Micros = SECOND // 10


def fares(*costs: int, key: str = "", rate: Rate | None = None) -> list[StartCost]:
    """Jobs of these costs, in their order."""
    return [StartCost((0, 0, f"{key}{i}"), cost, key, rate) for i, cost in enumerate(costs)]


def test_without_rates_everybody_starts() -> None:
    verdict = check_rates(fares(1, 5, 9), RateBuckets(None, None), 0)
    assert (verdict.allowed, verdict.throttled, verdict.queue_bucket, verdict.until) == (
        ["0", "1", "2"],
        {},
        None,
        None,
    )


def test_the_queue_stops_at_the_first_who_cannot_pay() -> None:
    verdict = check_rates(fares(1, 2, 1), RateBuckets(RATE, None), 0)
    assert (verdict.allowed, verdict.until) == (["0"], STEP)
    assert verdict.queue_bucket == spent(full(RATE, 0), 1)


def test_a_key_that_cannot_pay_does_not_stop_the_others() -> None:
    mixed = [*fares(1, 1, 1, key="k", rate=RATE), *fares(1, key="l", rate=RATE), *fares(1)]
    verdict = check_rates(mixed, RateBuckets(None, None), 0)
    assert verdict.allowed == ["k0", "k1", "l0", "0"]
    assert verdict.throttled == {"k2": STEP}
    assert set(verdict.key_buckets) == {"k", "l"}


def test_those_who_step_aside_come_back_one_after_the_other() -> None:
    empty = spent(full(RATE, 0), 2)
    verdict = check_rates(fares(1, 2, 1, key="k", rate=RATE), RateBuckets(None, None, {"k": empty}), 0)
    assert verdict.throttled == {"k0": STEP, "k1": 3 * STEP, "k2": 4 * STEP}
    assert not verdict.key_buckets


def test_nobody_overtakes_who_stepped_aside_before_him() -> None:
    one = spent(full(RATE, 0), 1)
    aside = {"k": [Throttled((0, -5, "before"), STEP, 2)]}
    verdict = check_rates(fares(1, key="k", rate=RATE), RateBuckets(None, None, {"k": one}, aside), 0)
    assert verdict.throttled == {"k0": 2 * STEP}


def test_who_comes_back_is_not_held_up_by_those_behind_him() -> None:
    one = spent(full(RATE, 0), 1)
    aside = {"k": [Throttled((0, 5, "behind"), STEP, 1)]}
    verdict = check_rates(fares(1, key="k", rate=RATE), RateBuckets(None, None, {"k": one}, aside), 0)
    assert verdict.allowed == ["k0"]


def test_a_queue_without_tokens_costs_no_key_anything() -> None:
    empty = spent(full(RATE, 0), 2)
    verdict = check_rates(fares(1, key="k", rate=RATE), RateBuckets(RATE, empty), 0)
    assert (verdict.allowed, verdict.key_buckets, verdict.queue_bucket, verdict.until) == ([], {}, None, STEP)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.sampled_from("kl")), min_size=1, max_size=25),
    st.lists(st.integers(0, SECOND), min_size=1, max_size=60),
)
def test_every_key_keeps_its_rate_and_its_order_and_all_start(
    jobs: list[tuple[int, str]], steps: list[Micros]
) -> None:
    """As a store does it: pending ones are charged, who stepped aside is pending again at his moment."""
    everybody = [StartCost((0, i, f"{i:02}"), cost, key, RATE) for i, (cost, key) in enumerate(jobs)]
    aside: dict[str, Micros] = {}
    buckets: dict[str, Bucket] = {}
    starts: dict[str, list[tuple[Micros, int]]] = {"k": [], "l": []}
    started: list[StartCost] = []
    now: Micros = DAY
    for step in [*steps, *[SECOND] * 2 * len(jobs)]:
        now += step
        pending = [f for f in everybody if f not in started and aside.get(f.id, 0) <= now]
        away: dict[str, list[Throttled]] = {"k": [], "l": []}
        for fare in everybody:
            if fare not in started and aside.get(fare.id, 0) > now:
                away[fare.key].append(Throttled(fare.order, aside[fare.id], fare.cost))
        verdict = check_rates(pending, RateBuckets(None, None, buckets, away), now)
        buckets |= {key: bucket for key, (bucket, _) in verdict.key_buckets.items()}
        aside |= verdict.throttled
        for fare in pending:
            if fare.id in verdict.allowed:
                started.append(fare)
                starts[fare.key].append((now, min(fare.cost, RATE.burst)))
    assert len(started) == len(everybody)
    for key in "kl":
        assert within_rate(starts[key], RATE)
        assert [f.id for f in started if f.key == key] == [f.id for f in everybody if f.key == key]
