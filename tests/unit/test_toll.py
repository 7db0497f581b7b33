"""The toll: jobs pay in their order, from the buckets of their queue and of their keys."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.runners import within_rate
from windlass.core.moments import DAY, SECOND, Micros
from windlass.core.rate import Bucket, Rate, full, spent
from windlass.core.toll import Aside, Fare, Purses, charge

RATE = Rate(10, SECOND, 2)
STEP: Micros = SECOND // 10


def fares(*costs: int, key: str = "", rate: Rate | None = None) -> list[Fare]:
    """Jobs of these costs, in their order."""
    return [Fare((0, 0, f"{key}{i}"), cost, key, rate) for i, cost in enumerate(costs)]


def test_without_rates_everybody_starts() -> None:
    verdict = charge(fares(1, 5, 9), Purses(None, None), 0)
    assert (verdict.paid, verdict.aside, verdict.own, verdict.until) == (["0", "1", "2"], {}, None, None)


def test_the_queue_stops_at_the_first_who_cannot_pay() -> None:
    verdict = charge(fares(1, 2, 1), Purses(RATE, None), 0)
    assert (verdict.paid, verdict.until) == (["0"], STEP)
    assert verdict.own == spent(full(RATE, 0), 1)


def test_a_key_that_cannot_pay_does_not_stop_the_others() -> None:
    mixed = [*fares(1, 1, 1, key="k", rate=RATE), *fares(1, key="l", rate=RATE), *fares(1)]
    verdict = charge(mixed, Purses(None, None), 0)
    assert verdict.paid == ["k0", "k1", "l0", "0"]
    assert verdict.aside == {"k2": STEP}
    assert set(verdict.keys) == {"k", "l"}


def test_those_who_step_aside_come_back_one_after_the_other() -> None:
    empty = spent(full(RATE, 0), 2)
    verdict = charge(fares(1, 2, 1, key="k", rate=RATE), Purses(None, None, {"k": empty}), 0)
    assert verdict.aside == {"k0": STEP, "k1": 3 * STEP, "k2": 4 * STEP}
    assert not verdict.keys


def test_nobody_overtakes_who_stepped_aside_before_him() -> None:
    one = spent(full(RATE, 0), 1)
    aside = {"k": [Aside((0, -5, "before"), STEP, 2)]}
    verdict = charge(fares(1, key="k", rate=RATE), Purses(None, None, {"k": one}, aside), 0)
    assert verdict.aside == {"k0": 2 * STEP}


def test_who_comes_back_is_not_held_up_by_those_behind_him() -> None:
    one = spent(full(RATE, 0), 1)
    aside = {"k": [Aside((0, 5, "behind"), STEP, 1)]}
    verdict = charge(fares(1, key="k", rate=RATE), Purses(None, None, {"k": one}, aside), 0)
    assert verdict.paid == ["k0"]


def test_a_queue_without_tokens_costs_no_key_anything() -> None:
    empty = spent(full(RATE, 0), 2)
    verdict = charge(fares(1, key="k", rate=RATE), Purses(RATE, empty), 0)
    assert (verdict.paid, verdict.keys, verdict.own, verdict.until) == ([], {}, None, STEP)


@given(
    st.lists(st.tuples(st.integers(1, 5), st.sampled_from("kl")), min_size=1, max_size=25),
    st.lists(st.integers(0, SECOND), min_size=1, max_size=60),
)
def test_every_key_keeps_its_rate_and_its_order_and_all_start(
    jobs: list[tuple[int, str]], steps: list[Micros]
) -> None:
    """As a store does it: pending ones are charged, who stepped aside is pending again at his moment."""
    everybody = [Fare((0, i, f"{i:02}"), cost, key, RATE) for i, (cost, key) in enumerate(jobs)]
    aside: dict[str, Micros] = {}
    buckets: dict[str, Bucket] = {}
    starts: dict[str, list[tuple[Micros, int]]] = {"k": [], "l": []}
    started: list[Fare] = []
    now: Micros = DAY
    for step in [*steps, *[SECOND] * 2 * len(jobs)]:
        now += step
        pending = [f for f in everybody if f not in started and aside.get(f.id, 0) <= now]
        away: dict[str, list[Aside]] = {"k": [], "l": []}
        for fare in everybody:
            if fare not in started and aside.get(fare.id, 0) > now:
                away[fare.key].append(Aside(fare.place, aside[fare.id], fare.cost))
        verdict = charge(pending, Purses(None, None, buckets, away), now)
        buckets |= {key: bucket for key, (bucket, _) in verdict.keys.items()}
        aside |= verdict.aside
        for fare in pending:
            if fare.id in verdict.paid:
                started.append(fare)
                starts[fare.key].append((now, min(fare.cost, RATE.burst)))
    assert len(started) == len(everybody)
    for key in "kl":
        assert within_rate(starts[key], RATE)
        assert [f.id for f in started if f.key == key] == [f.id for f in everybody if f.key == key]
