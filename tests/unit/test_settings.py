"""Limits, fairness and ageing as they are given: checked, changed one by one, and lifted."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from windlass.core.flow.queue import QueueSettings, amended, merge, settings, without
from windlass.core.flow.rate import Rate
from windlass.core.jobs.retry import ByError, Fixed
from windlass.core.moments import DAY, SECOND
from windlass.core.status import Status
from windlass.errors import InvalidInput, InvalidOption

ALL: dict[str, Any] = {
    "max_concurrency": 8,
    "rate_limit": "10/s burst 50",
    "fair": True,
    "weights": {"acme": 2, "other": 0.5},
    "ageing": timedelta(minutes=10),
}


def test_limits_are_settings_like_others_and_survive_being_stored() -> None:
    given = settings(**ALL)
    assert msgspec.json.decode(msgspec.json.encode(given), type=QueueSettings) == given
    rules = merge(given, QueueSettings())
    assert (rules.max_concurrency, rules.rate_limit) == (8, Rate(10, SECOND, 50))
    assert (rules.fair, rules.weights, rules.ageing) == (True, {"acme": 2.0, "other": 0.5}, 600 * SECOND)
    assert rules.limited


@pytest.mark.parametrize("name", ["max_concurrency", "rate_limit", "ageing", "timeout"])
def test_none_in_words_lifts_what_the_code_declares_and_none_itself_says_nothing(name: str) -> None:
    declared = settings(max_concurrency=8, rate_limit="1/s", ageing=5, timeout=5)
    plain = getattr(merge(QueueSettings(), QueueSettings()), name)
    lifted: Any = {name: "none"}
    unsaid: Any = {name: None}
    rules = merge(declared, settings(**lifted))
    assert getattr(rules, name) == (0 if name == "timeout" else plain)
    assert merge(declared, settings(**unsaid)) == merge(declared, QueueSettings())


def test_a_word_that_is_not_said_changes_nothing_of_what_was() -> None:
    before = settings(**ALL)
    after = amended(before, settings(max_concurrency=4, weights={"new": 3}, retention={"dead": "30d"}))
    assert after == msgspec.structs.replace(
        before,
        max_concurrency=4,
        weights={"acme": 2.0, "other": 0.5, "new": 3.0},
        retention={Status.DEAD: 30 * DAY},
    )
    assert amended(after, settings(fair=False)).fair is False


def test_settings_are_undone_by_name_or_all_at_once() -> None:
    before = settings(**ALL)
    assert without(before, ["rate_limit", "weights"]) == msgspec.structs.replace(before, rate_limit=None, weights={})
    assert without(before, []) == QueueSettings()
    with pytest.raises(
        InvalidOption, match=r"^setting: 'rate' is not a setting of a queue; there are max_attempts, retry"
    ):
        without(before, ["rate"])


def test_weights_are_bounded_also_if_they_come_in_parts() -> None:
    many: dict[str, float] = {f"t{n}": 1 for n in range(1000)}
    before = settings(weights=many)
    assert amended(before, settings(weights={"t1": 2})).weights["t1"] == 2
    with pytest.raises(InvalidOption, match=r"^weights: has 1001 tenants, the limit is 1000"):
        amended(before, settings(weights={"more": 1}))


@pytest.mark.parametrize("length", ["7d", 604_800, 604_800.0, timedelta(days=7)])
def test_lengths_are_seconds_or_a_timedelta_or_text(length: Any) -> None:
    given = settings(retention={"completed": length}, ageing=length, timeout=length)
    assert (given.retention, given.ageing, given.timeout) == ({Status.COMPLETED: 7 * DAY}, 7 * DAY, 7 * DAY)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "retry by error": ({"retry": ByError({})}, "^retry: must be Exponential, Linear, Fixed or Steps, not ByError"),
    "retention that is a length": ({"retention": "7d"}, "^retention: must be a mapping of status to duration"),
    "timeout 0": ({"timeout": 0}, "^timeout: must be more than 0 seconds"),
    "timeout in other words": ({"timeout": "never"}, "^timeout: 'never' is not a duration"),
    "an unknown setting": (
        {"max_concurency": 4},
        "^max_concurency: is not a setting of a queue; did you mean max_concurrency",
    ),
}


@pytest.mark.parametrize("row", BAD)
def test_what_cannot_be_set_is_refused(row: str) -> None:
    options, problem = BAD[row]
    with pytest.raises(InvalidInput, match=problem):
        settings(**options)


def test_a_policy_may_be_any_that_can_be_stored() -> None:
    assert settings(retry=Fixed(base=1)).retry == Fixed(base=1)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("10/s", Rate(10, SECOND, 10)),
        ("600/m", Rate(600, 60 * SECOND, 600)),
        ("1/h", Rate(1, 3600 * SECOND, 1)),
        (" 5 / 10s burst 20 ", Rate(5, 10 * SECOND, 20)),
        ("1000000/d burst 1", Rate(1_000_000, DAY, 1)),
    ],
)
def test_a_rate_is_read_and_written_back_alike(text: str, rate: Rate) -> None:
    assert settings(rate_limit=text).rate_limit == rate
    assert settings(rate_limit=str(rate)).rate_limit == rate
