"""The rate check: jobs pay in their order, from the token buckets of their queue and of their keys."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.runners import within_rate
from windlass.core.flow.rate import Rate, TokenBucket, full, spent
from windlass.core.flow.rate_check import StartCost, Throttled, TokenBuckets, check_rates
from windlass.core.moments import DAY, SECOND, Micros

RATE = Rate(10, SECOND, 2)
STEP: Micros = SECOND // 10


def costs(*costs: int, key: str = "", rate: Rate | None = None) -> list[StartCost]:
    """Jobs of these costs, in their order."""
    return [StartCost((0, 0, f"{key}{i}"), cost, key, rate) for i, cost in enumerate(costs)]


def test_without_rates_every_job_starts() -> None:
    verdict = check_rates(costs(1, 5, 9), TokenBuckets(None, None), 0)
    assert (verdict.allowed, verdict.throttled, verdict.queue_token_bucket, verdict.until) == (
        ["0", "1", "2"],
        {},
        None,
        None,
    )


def test_the_queue_stops_at_the_first_without_tokens() -> None:
    verdict = check_rates(costs(1, 2, 1), TokenBuckets(RATE, None), 0)
    assert (verdict.allowed, verdict.until) == (["0"], STEP)
    assert verdict.queue_token_bucket == spent(full(RATE, 0), 1)


def test_a_key_that_cannot_pay_does_not_stop_the_others() -> None:
    mixed = [*costs(1, 1, 1, key="k", rate=RATE), *costs(1, key="l", rate=RATE), *costs(1)]
    verdict = check_rates(mixed, TokenBuckets(None, None), 0)
    assert verdict.allowed == ["k0", "k1", "l0", "0"]
    assert verdict.throttled == {"k2": STEP}
    assert set(verdict.key_token_buckets) == {"k", "l"}


def test_throttled_jobs_come_back_one_after_the_other() -> None:
    empty = spent(full(RATE, 0), 2)
    verdict = check_rates(costs(1, 2, 1, key="k", rate=RATE), TokenBuckets(None, None, {"k": empty}), 0)
    assert verdict.throttled == {"k0": STEP, "k1": 3 * STEP, "k2": 4 * STEP}
    assert not verdict.key_token_buckets


def test_no_job_overtakes_one_that_was_throttled_before_it() -> None:
    one = spent(full(RATE, 0), 1)
    throttled = {"k": [Throttled((0, -5, "before"), STEP, 2)]}
    verdict = check_rates(costs(1, key="k", rate=RATE), TokenBuckets(None, None, {"k": one}, throttled), 0)
    assert verdict.throttled == {"k0": 2 * STEP}


def test_a_job_that_comes_back_is_not_delayed_by_those_behind_it() -> None:
    one = spent(full(RATE, 0), 1)
    throttled = {"k": [Throttled((0, 5, "behind"), STEP, 1)]}
    verdict = check_rates(costs(1, key="k", rate=RATE), TokenBuckets(None, None, {"k": one}, throttled), 0)
    assert verdict.allowed == ["k0"]


def test_a_queue_without_tokens_costs_no_key_anything() -> None:
    empty = spent(full(RATE, 0), 2)
    verdict = check_rates(costs(1, key="k", rate=RATE), TokenBuckets(RATE, empty), 0)
    assert (verdict.allowed, verdict.key_token_buckets, verdict.queue_token_bucket, verdict.until) == (
        [],
        {},
        None,
        STEP,
    )


@given(
    st.lists(st.tuples(st.integers(1, 5), st.sampled_from("kl")), min_size=1, max_size=25),
    st.lists(st.integers(0, SECOND), min_size=1, max_size=60),
)
def test_every_key_keeps_its_rate_and_its_order_and_all_start(
    jobs: list[tuple[int, str]], steps: list[Micros]
) -> None:
    """As a store does it: pending ones are charged, throttled ones are pending again at their moment."""
    ordered = [StartCost((0, i, f"{i:02}"), cost, key, RATE) for i, (cost, key) in enumerate(jobs)]
    throttled: dict[str, Micros] = {}
    token_buckets: dict[str, TokenBucket] = {}
    starts: dict[str, list[tuple[Micros, int]]] = {"k": [], "l": []}
    started: list[StartCost] = []
    now: Micros = DAY
    for step in [*steps, *[SECOND] * 2 * len(jobs)]:
        now += step
        pending = [f for f in ordered if f not in started and throttled.get(f.id, 0) <= now]
        away: dict[str, list[Throttled]] = {"k": [], "l": []}
        for each in ordered:
            if each not in started and throttled.get(each.id, 0) > now:
                away[each.key].append(Throttled(each.order, throttled[each.id], each.cost))
        verdict = check_rates(pending, TokenBuckets(None, None, token_buckets, away), now)
        token_buckets |= {key: token_bucket for key, (token_bucket, _) in verdict.key_token_buckets.items()}
        throttled |= verdict.throttled
        for each in pending:
            if each.id in verdict.allowed:
                started.append(each)
                starts[each.key].append((now, min(each.cost, RATE.burst)))
    assert len(started) == len(ordered)
    for key in "kl":
        assert within_rate(starts[key], RATE)
        assert [f.id for f in started if f.key == key] == [f.id for f in ordered if f.key == key]
