"""A bad call fails at the producer, says what is wrong and what the limit is, and stores nothing."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from tests.client.labour import total
from windlass import (
    App,
    InvalidInput,
    InvalidName,
    InvalidOption,
    InvalidPayload,
    InvalidTime,
    PayloadTooLarge,
    Task,
)


@dataclass
class Reading:
    value: float | None


@pytest.fixture
def task(app: App) -> Iterator[Task[..., Any, Any]]:
    """A task that takes anything, one int, and a dataclass; and a look afterwards that nothing was stored."""

    @app.task(type="t")
    def task(thing: Any = None, number: int = 0, reading: Reading | None = None) -> None: ...

    app.stats.counts()
    yield task
    assert total(app) == 0


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


def cycle() -> Any:
    value: list[Any] = []
    value.append({"again": value})
    return value


class Broken:
    def model_dump(self, *, mode: str, by_alias: bool) -> dict[str, Any]:
        raise KeyError("nothing works here")


PAYLOADS: dict[str, tuple[dict[str, Any], str]] = {
    "2 lone surrogate": ({"thing": "\ud800"}, "^thing: contains a lone surrogate"),
    "2 lone surrogate in a key": ({"thing": {"\udfff": 1}}, "^thing: contains a lone surrogate"),
    "3 NaN": ({"thing": float("nan")}, "^thing: nan is not JSON"),
    "3 infinity, deep": ({"thing": {"a": [1, float("inf")]}}, r"^thing\.a\[1\]: inf is not JSON"),
    "3 1e999": ({"number": 1e999}, "^number: inf is not JSON"),
    "3 NaN in a dataclass": ({"reading": Reading(float("nan"))}, r"^reading\.value: nan is not JSON"),
    "4 2^63": ({"thing": 2**63}, "^thing: is an integer beyond 64 bits; send it as a string"),
    "4 -2^63-1": ({"number": -(2**63) - 1}, "^number: is an integer beyond 64 bits; send it as a string"),
    "5 4301 digits": ({"thing": 10**4301}, "^thing: is an integer beyond 64 bits; send it as a string"),
    "10 depth 65": ({"thing": nested(65)}, "^thing: is nested deeper than 64 levels"),
    "10 depth 100,000": ({"thing": nested(100_000)}, "^thing: is nested deeper than 64 levels"),
    "11 cycle": ({"thing": cycle()}, "^thing: is nested deeper than 64 levels, or contains itself"),
    "12 bytes": ({"thing": b"x"}, "^thing: bytes is not JSON; annotate the parameter, or convert it"),
    "12 set, deep": ({"thing": {"a": [{1}]}}, r"^thing\.a\[0\]: set is not JSON"),
    "12 Decimal": ({"thing": Decimal(1)}, "^thing: Decimal is not JSON"),
    "12 datetime": ({"thing": datetime.now(UTC)}, "^thing: datetime is not JSON"),
    "12 UUID": ({"thing": uuid4()}, "^thing: UUID is not JSON"),
    "12 dataclass": ({"thing": Reading(1)}, "^thing: Reading is not JSON"),
    "12 function": ({"reading": nested}, "^reading: "),
    "12 an object whose dump fails": ({"reading": Broken()}, "^reading: .*nothing works here"),
    "14 integer keys": ({"thing": {1: "a", "1": "b"}}, "^thing: has keys that are not strings"),
    "wrong type": ({"number": "1"}, "^number: expected int, got str"),
    "wrong type, bool": ({"number": True}, "^number: expected int, got bool"),
    "wrong type, deep": ({"reading": {"value": "x"}}, r"^reading\.value: "),
    "unknown argument": ({"nmuber": 1}, "^nmuber: is not an argument of t"),
    "too many values": ({"thing": [0] * 65_536}, "^thing: has more than 65,536 values"),
}


@pytest.mark.parametrize("row", PAYLOADS)
def test_an_argument_that_json_would_lose_is_refused(task: Task[..., Any, Any], row: str) -> None:
    arguments, problem = PAYLOADS[row]
    with pytest.raises(InvalidPayload, match=problem) as caught:
        task.enqueue(**arguments)
    assert caught.value.field.startswith(next(iter(arguments)))
    assert len(str(caught.value)) < 500


def test_too_many_positional_arguments_are_refused(task: Task[..., Any, Any]) -> None:
    with pytest.raises(InvalidPayload, match=r"^arguments: t takes 3 by position, not 4"):
        task.enqueue(1, 2, None, 4)


def test_an_argument_given_twice_is_refused(task: Task[..., Any, Any]) -> None:
    with pytest.raises(InvalidPayload, match=r"^thing: is given to t twice"):
        task.enqueue(1, thing=2)


def test_a_missing_argument_is_named_with_all_that_are_needed(app: App) -> None:
    @app.task
    def move(source: str, target: str) -> None: ...

    with pytest.raises(InvalidPayload, match=r"^target: is missing: move needs source, target"):
        move.enqueue("a")  # type: ignore[call-arg]


FRAME = len('{"thing":""}')


@pytest.mark.parametrize(
    ("thing", "size"),
    [("x" * (65_537 - FRAME), 65_537), ("ü" * 32_800, 65_612), ("x" * 50_000_000, 50_000_012)],
    ids=["15 one byte too many", "15 bytes count, not characters", "16 50 MB"],
)
def test_a_payload_over_the_limit_is_refused_with_its_size_and_the_limit(
    task: Task[..., Any, Any], thing: str, size: int
) -> None:
    with pytest.raises(PayloadTooLarge, match=f"^payload: is {size:,} bytes of JSON, the limit is 65,536"):
        task.enqueue(thing)


BAD_NAMES: dict[str, Any] = {
    "25 empty": "",
    "25 129 characters": "x" * 129,
    "25 space": "a b",
    "25 newline": "a\n",
    "25 braces": "{x}",
    "25 star": "*",
    "25 path": "../x",
    "26 SQL": "'; DROP TABLE windlass_jobs",
    "26 quote": '"',
    "26 backslash": "a\\b",
    "26 emoji": "🧵",
    "26 right to left": "a\u202eb",
    "26 NUL": "a\x00b",
    "27 script": "<script>alert(1)</script>",
    "not a string": 5,
}


@pytest.mark.parametrize("option", ["queue", "tenant"])
@pytest.mark.parametrize("row", BAD_NAMES)
def test_a_bad_name_is_refused(task: Task[..., Any, Any], option: str, row: str) -> None:
    with pytest.raises(InvalidName, match=f"^{option}: ") as caught:
        task.using(**{option: BAD_NAMES[row]}).enqueue()
    assert str(caught.value).isprintable()


class Nowhere(tzinfo):
    def utcoffset(self, moment: datetime | None) -> None:
        return None

    def dst(self, moment: datetime | None) -> None:
        return None

    def tzname(self, moment: datetime | None) -> None:
        return None


NOW = datetime.now(UTC)
OPTIONS: dict[str, tuple[dict[str, Any], type[InvalidInput], str]] = {
    "42 naive": ({"run_at": datetime(2026, 1, 1)}, InvalidTime, "^run_at: has no time zone"),
    "42 zone without an offset": (
        {"run_at": NOW.replace(tzinfo=Nowhere())},
        InvalidTime,
        "^run_at: has no time zone",
    ),
    "43 year 1": ({"run_at": NOW.replace(year=1)}, InvalidTime, "^run_at: .* is outside 1970 to 2200"),
    "43 before the year 1": (
        {"run_at": datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))},
        InvalidTime,
        "^run_at: .* is outside 1970 to 2200",
    ),
    "43 1969": ({"run_at": datetime(1969, 12, 31, tzinfo=UTC)}, InvalidTime, "outside 1970 to 2200"),
    "43 2200": ({"run_at": datetime(2200, 1, 1, tzinfo=UTC)}, InvalidTime, "outside 1970 to 2200"),
    "43 year 9999": ({"run_at": NOW.replace(year=9999)}, InvalidTime, "outside 1970 to 2200"),
    "43 infinity": ({"run_at": float("inf")}, InvalidTime, "^run_at: must be a datetime, not float"),
    "45 negative": ({"delay": -1}, InvalidTime, "^delay: must be from 0 to 100 years"),
    "45 a little negative": ({"delay": timedelta(microseconds=-1)}, InvalidTime, "^delay: must be from 0"),
    "45 NaN": ({"delay": float("nan")}, InvalidTime, "^delay: must be finite, not nan"),
    "45 1e300": ({"delay": 1e300}, InvalidTime, "^delay: must be from 0 to 100 years"),
    "45 10^400": ({"delay": 10**400}, InvalidTime, "^delay: must be from 0 to 100 years"),
    "45 10^5000": ({"delay": 10**5000}, InvalidTime, "^delay: must be from 0 to 100 years"),
    "45 text": ({"delay": "5"}, InvalidTime, "^delay: must be seconds or a timedelta, not str"),
    "45 true": ({"delay": True}, InvalidTime, "^delay: must be seconds or a timedelta, not bool"),
    "46 priority 32768": ({"priority": 32768}, InvalidOption, "^priority: .* from -32768 to 32767, not 32768"),
    "46 priority -32769": ({"priority": -32769}, InvalidOption, "^priority: "),
    "46 priority 1.5": ({"priority": 1.5}, InvalidOption, "^priority: "),
    "46 priority text": ({"priority": "1"}, InvalidOption, "^priority: "),
    "46 priority true": ({"priority": True}, InvalidOption, "^priority: "),
    "47 no attempts": ({"max_attempts": 0}, InvalidOption, "^max_attempts: .* from 1 to 1000, not 0"),
    "47 fewer than none": ({"max_attempts": -1}, InvalidOption, "^max_attempts: "),
    "47 a milliard": ({"max_attempts": 10**9}, InvalidOption, "^max_attempts: "),
    "50 empty key": ({"idempotency_key": ""}, InvalidName, "^idempotency_key: must be 1 to 4096 bytes"),
    "50 NUL in a key": ({"idempotency_key": "a\x00"}, InvalidName, "^idempotency_key: .* without NUL"),
    "50 a key of 4097 bytes": ({"idempotency_key": "x" * 4097}, InvalidName, "^idempotency_key: .* not 4097 bytes"),
    "50 surrogate in a key": ({"idempotency_key": "\ud800"}, InvalidName, "^idempotency_key: is not valid Unicode"),
    "50 a key that is a number": ({"idempotency_key": 42}, InvalidName, "^idempotency_key: must be a string"),
    "52 id": ({"id": "42"}, InvalidName, "^id: '42' is not a UUID"),
    "52 id that is a path": ({"id": "../../etc/passwd"}, InvalidName, "^id: "),
    "52 id of 1 MB": ({"id": "0" * 2**20}, InvalidName, "^id: '0{40}' is not a UUID"),
    "52 parent": ({"parent": "42"}, InvalidName, "^parent: "),
    "63 1001 tags": (
        {"tags": [f"t{n}" for n in range(1001)]},
        InvalidOption,
        "^tags: has 1001 entries, the limit is 32",
    ),
    "63 a tag of 10 kB": ({"tags": ["ok", "x" * 10_000]}, InvalidName, r"^tags\[1\]: "),
    "63 a tag twice": ({"tags": ["a", "b", "a"]}, InvalidOption, "^tags: has an entry twice"),
    "63 tags as one string": ({"tags": "abc"}, InvalidOption, "^tags: must be a list of names, not str"),
    "meta that is not a mapping": ({"meta": [1]}, InvalidOption, "^meta: must be a mapping, not list"),
    "meta that is not JSON": ({"meta": {"a": {1}}}, InvalidPayload, r"^meta\.a: set is not JSON"),
    "meta over the limit": ({"meta": {"a": "x" * 70_000}}, PayloadTooLarge, "^meta: .* the limit is 65,536"),
    "delay and run_at": ({"delay": 1, "run_at": NOW}, InvalidOption, "^delay: cannot be given together with run_at"),
    "an unknown option": ({"priorty": 1}, InvalidOption, "^priorty: is not an option; there are delay, id, "),
}


@pytest.mark.parametrize("row", OPTIONS)
def test_a_bad_option_is_refused(task: Task[..., Any, Any], row: str) -> None:
    options, error, problem = OPTIONS[row]
    with pytest.raises(error, match=problem) as caught:
        task.using(**options).enqueue()
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("call", [lambda task: task, lambda task: None, lambda task: {"type": "t"}])
def test_one_wrong_entry_of_a_batch_is_named_and_nothing_of_it_is_stored(
    app: App, task: Task[..., Any, Any], call: Callable[[Any], Any]
) -> None:
    batch = [task.job(n) for n in range(100)]
    batch[42] = call(task)
    with pytest.raises(InvalidOption, match=r"^jobs\[42\]: is not a job; make it with task\.job\(\.\.\.\)"):
        app.enqueue_many(batch)


@pytest.mark.parametrize("verb", ["get", "cancel", "retry", "delete"])
@pytest.mark.parametrize("id_", ["42", "../", "0" * 2**20, ""])
def test_a_verb_refuses_an_id_that_is_none(app: App, task: Task[..., Any, Any], verb: str, id_: str) -> None:
    with pytest.raises(InvalidName, match=r"^id: "):
        getattr(app.jobs, verb)(id_)


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"status": "done"}, "status"),
        ({"status": ["dead", "done"]}, "status"),
        ({"type": "a b"}, "type"),
        ({"queue": "a b"}, "queue"),
        ({"tag": "'"}, "tag"),
        ({"tenant": ""}, "tenant"),
        ({"limit": 0}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": "5"}, "limit"),
        ({"cursor": "forged"}, "cursor"),
    ],
)
def test_a_list_refuses_a_wrong_filter(
    app: App, task: Task[..., Any, Any], wanted: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput, match=f"^{field}: "):
        app.jobs.list(**wanted)
