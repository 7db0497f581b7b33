"""Retry policies: pure arithmetic."""

import copy
import pickle
from datetime import timedelta
from random import Random
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.jobs.job import MAX_ATTEMPTS
from windlass.core.jobs.retry import (
    DEFAULT_POLICY,
    ByError,
    Exponential,
    Fixed,
    Linear,
    Steps,
    StoredPolicy,
    add_to_meta,
    policy_in_meta,
    wait_after,
)
from windlass.errors import ConfigError

SURE = Random(0)
policies = st.builds(
    lambda kind, base, cap, jitter: kind(base=base, cap=cap, jitter=jitter),
    st.sampled_from([Exponential, Linear, Fixed]),
    st.floats(0, 1e9),
    st.floats(0, 1e9),
    st.floats(0, 1),
) | st.builds(
    lambda lengths, jitter: Steps(*lengths, jitter=jitter),
    st.lists(st.floats(0, 1e9), min_size=1),
    st.floats(0, 1),
)


def waits(policy: StoredPolicy, *failures: int) -> list[float]:
    return [policy.seconds(n, SURE) for n in failures]


def test_exponential_multiplies() -> None:
    assert waits(Exponential(base=10, jitter=0), 1, 2, 3, 4) == [10, 20, 40, 80]
    assert waits(Exponential(base=1, factor=3, jitter=0), 1, 2, 3) == [1, 3, 9]


def test_linear_adds() -> None:
    assert waits(Linear(base=10, jitter=0), 1, 2, 3) == [10, 20, 30]


def test_fixed_stays() -> None:
    assert waits(Fixed(base=10, jitter=0), 1, 2, 50) == [10, 10, 10]


@pytest.mark.parametrize("kind", [Exponential, Linear, Fixed])
def test_the_cap_holds(kind: type[Exponential | Linear | Fixed]) -> None:
    assert waits(kind(base=100, cap=50, jitter=0), 1, 1000) == [50, 50]


@pytest.mark.parametrize("kind", [Exponential, Linear, Fixed])
def test_no_failure_yet_counts_as_one(kind: type[Exponential | Linear | Fixed]) -> None:
    assert waits(kind(base=10, jitter=0), 0, -5) == [10, 10]


def test_steps_are_taken_one_after_the_other_and_the_last_is_repeated() -> None:
    steps = Steps(1, "5s", timedelta(seconds=30), "10m", jitter=0)
    assert steps.attempts == 5
    assert waits(steps, 1, 2, 3, 4) == [1, 5, 30, 600]
    assert waits(Steps(1, 5, attempts=9, jitter=0), 0, 2, 3, 8) == [1, 5, 5, 5]


@pytest.mark.parametrize(
    ("given_", "problem"),
    [
        ({"waits": ()}, "Steps.waits must be 1 to 999 durations"),
        ({"waits": (1, "soon")}, "Steps.waits must be durations .*, not 'soon'"),
        ({"waits": (1,) * 1000}, "Steps.waits must be 1 to 999 durations"),
        ({"waits": (1,), "attempts": 0}, "Steps.attempts must be from 1 to 1000, not 0"),
        ({"waits": (1,), "jitter": 2}, "Steps.jitter must be from 0 to 1, not 2"),
    ],
)
def test_steps_that_cannot_be_taken_are_refused(given_: dict[str, Any], problem: str) -> None:
    waits_ = given_.pop("waits")
    with pytest.raises(ConfigError, match=problem):
        Steps(*waits_, **given_)


def test_waits_are_durations() -> None:
    assert Exponential(base="1m", cap=timedelta(hours=1)) == Exponential(base=60, cap=3600)
    assert Linear(base="500ms").base == 0.5


def test_steps_can_be_copied_and_pickled() -> None:
    steps = Steps(1, 5, attempts=9)
    assert pickle.loads(pickle.dumps(steps)) == copy.copy(steps) == steps


def test_the_default_is_a_minute_doubled_up_to_an_hour() -> None:
    assert (DEFAULT_POLICY.attempts, DEFAULT_POLICY.base, DEFAULT_POLICY.cap) == (3, 60, 3600)


def test_nothing_overflows() -> None:
    assert waits(Exponential(base=3_153_600_000, factor=100, jitter=0, cap=60), 10**9) == [60]


@given(policies, st.integers(1, MAX_ATTEMPTS), st.integers())
def test_jitter_stays_within_its_bounds(policy: StoredPolicy, failures: int, seed: int) -> None:
    plain = msgspec.structs.replace(policy, jitter=0.0).seconds(failures, Random(0))
    wait = policy.seconds(failures, Random(seed))
    slack = 1e-9 * plain
    assert plain * (1 - policy.jitter) - slack <= wait <= plain * (1 + policy.jitter) + slack
    assert wait >= 0


def test_jitter_spreads_both_ways() -> None:
    spread = [Fixed(base=100, jitter=0.5).seconds(1, Random(seed)) for seed in range(200)]
    assert min(spread) < 75
    assert max(spread) > 125


def test_by_error_takes_the_nearest_class() -> None:
    policy = ByError(
        {OSError: Fixed(base=1, jitter=0), ConnectionError: Fixed(base=2, jitter=0)}, Fixed(base=3, jitter=0)
    )
    errors: list[BaseException] = [ConnectionResetError(), FileNotFoundError(), ValueError()]
    assert [wait_after(policy, error, 1, SURE) for error in errors] == [2, 1, 3]


def test_by_error_has_one_budget() -> None:
    assert ByError({OSError: Fixed()}, Linear(attempts=4)).attempts == 4


@pytest.mark.parametrize(
    ("policies", "problem"),
    [
        ({ValueError: 3}, "ValueError has 3, which is no policy: give Exponential"),
        ({ValueError: Fixed}, "ValueError has <class .*Fixed'>, which is no policy"),
        ({ValueError: ByError({})}, "ValueError has ByError.* which is no policy"),
        ({ValueError: Fixed(attempts=9)}, "ValueError has attempts=9; a job has one budget"),
        ({ValueError: Exponential(attempts=3)}, "ValueError has attempts=3; a job has one budget"),
        ({"ValueError": Fixed()}, "'ValueError' is not an exception class"),
        ([ValueError], "takes a policy for each exception class, not "),
    ],
)
def test_by_error_refuses_what_it_would_ignore(policies: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        ByError(policies)


def test_by_error_names_every_problem() -> None:
    wrong: Any = {ValueError: 3, KeyError: Fixed(attempts=2), OSError: Fixed()}
    with pytest.raises(ConfigError) as caught:
        ByError(wrong, cast("Any", 5))
    assert [problem.split()[1] for problem in caught.value.problems] == ["ValueError", "the", "otherwise"]


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        *(("attempts", bad) for bad in (0, -1, 1001, 10**9, 1.5, "3", True, None)),
        *(
            (field, bad)
            for field in ("base", "cap")
            for bad in (-1, float("nan"), float("inf"), 1e10, "soon", None, True)
        ),
        *(("jitter", bad) for bad in (-0.1, 1.1, float("nan"), "x", None)),
        *(("factor", bad) for bad in (0.5, 101, float("nan"), "2", None)),
    ],
)
def test_values_that_cannot_work_are_refused_by_name(field: str, bad: Any) -> None:
    with pytest.raises(ConfigError, match=f"Exponential.{field}"):
        Exponential(**{field: bad})


def test_all_problems_are_listed_together() -> None:
    with pytest.raises(ConfigError) as refused:
        Exponential(attempts=0, base=-1, cap=-1, jitter=2, factor=0)
    assert len(refused.value.problems) == 5


@given(policies)
def test_a_policy_survives_being_stored(policy: StoredPolicy) -> None:
    assert msgspec.json.decode(msgspec.json.encode(policy), type=StoredPolicy) == policy
    assert policy_in_meta(add_to_meta(None, policy)) == policy
