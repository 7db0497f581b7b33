"""Bad inputs, numbered as in the catalogue: what is enqueued, the error, the field and the limit that it names."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import uuid4

from windlass import InvalidInput, InvalidName, InvalidOption, InvalidPayload, InvalidTime, PayloadTooLarge


class Payload(NamedTuple):
    """Arguments of a call, and the same as JSON if a command line can say them."""

    arguments: dict[str, Any]
    problem: str
    text: str | None = None


@dataclass
class Reading:
    value: float | None


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


PAYLOADS: dict[str, Payload] = {
    "2 lone surrogate": Payload({"thing": "\ud800"}, "^thing: contains a lone surrogate", r'{"thing": "\ud800"}'),
    "2 lone surrogate in a key": Payload(
        {"thing": {"\udfff": 1}}, "^thing: contains a lone surrogate", r'{"thing": {"\udfff": 1}}'
    ),
    "3 NaN": Payload({"thing": float("nan")}, "^thing: nan is not JSON", '{"thing": NaN}'),
    "3 infinity, deep": Payload(
        {"thing": {"a": [1, float("inf")]}}, r"^thing\.a\[1\]: inf is not JSON", '{"thing": {"a": [1, Infinity]}}'
    ),
    "3 1e999": Payload({"number": 1e999}, "^number: inf is not JSON", '{"number": 1e999}'),
    "3 NaN in a dataclass": Payload(
        {"reading": Reading(float("nan"))}, r"^reading\.value: nan is not JSON", '{"reading": {"value": NaN}}'
    ),
    "4 2^63": Payload(
        {"thing": 2**63}, "^thing: is an integer beyond 64 bits; send it as a string", f'{{"thing": {2**63}}}'
    ),
    "4 -2^63-1": Payload(
        {"number": -(2**63) - 1},
        "^number: is an integer beyond 64 bits; send it as a string",
        f'{{"number": {-(2**63) - 1}}}',
    ),
    "5 4301 digits": Payload(
        {"thing": 10**4301},
        "^thing: is an integer beyond 64 bits; send it as a string",
        '{"thing": 1' + "0" * 4301 + "}",
    ),
    "10 depth 65": Payload(
        {"thing": nested(65)},
        "^thing: is nested deeper than 64 levels",
        '{"thing": ' + "[" * 65 + "0" + "]" * 65 + "}",
    ),
    "10 depth 100,000": Payload({"thing": nested(100_000)}, "^thing: is nested deeper than 64 levels", None),
    "11 cycle": Payload({"thing": cycle()}, "^thing: is nested deeper than 64 levels, or contains itself", None),
    "12 bytes": Payload({"thing": b"x"}, "^thing: bytes is not JSON; annotate the parameter, or convert it", None),
    "12 set, deep": Payload({"thing": {"a": [{1}]}}, r"^thing\.a\[0\]: set is not JSON", None),
    "12 Decimal": Payload({"thing": Decimal(1)}, "^thing: Decimal is not JSON", None),
    "12 datetime": Payload({"thing": datetime.now(UTC)}, "^thing: datetime is not JSON", None),
    "12 UUID": Payload({"thing": uuid4()}, "^thing: UUID is not JSON", None),
    "12 dataclass": Payload({"thing": Reading(1)}, "^thing: Reading is not JSON", None),
    "12 function": Payload({"reading": nested}, "^reading: ", None),
    "12 an object whose dump fails": Payload({"reading": Broken()}, "^reading: .*nothing works here", None),
    "14 integer keys": Payload({"thing": {1: "a", "1": "b"}}, "^thing: has keys that are not strings", None),
    "wrong type": Payload({"number": "1"}, "^number: expected int, got str", '{"number": "1"}'),
    "wrong type, bool": Payload({"number": True}, "^number: expected int, got bool", '{"number": true}'),
    "wrong type, deep": Payload({"reading": {"value": "x"}}, r"^reading\.value: ", '{"reading": {"value": "x"}}'),
    "unknown argument": Payload({"nmuber": 1}, "^nmuber: is not an argument of t", '{"nmuber": 1}'),
    "too many values": Payload(
        {"thing": [0] * 65_536}, "^thing: has more than 65,536 values", '{"thing": [' + "0," * 65_535 + "0]}"
    ),
}

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
    "45 NaN": ({"delay": float("nan")}, InvalidTime, "^delay: must be from 0 to 100 years, not nan"),
    "45 1e300": ({"delay": 1e300}, InvalidTime, "^delay: must be from 0 to 100 years"),
    "45 10^400": ({"delay": 10**400}, InvalidTime, "^delay: must be from 0 to 100 years"),
    "45 10^5000": ({"delay": 10**5000}, InvalidTime, "^delay: must be from 0 to 100 years"),
    "45 text": ({"delay": "soon"}, InvalidTime, "^delay: 'soon' is not a duration"),
    "45 true": ({"delay": True}, InvalidTime, "^delay: True is not a duration"),
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
    "a window that is negative": (
        {"idempotency_key": "k", "idempotency_window": -1},
        InvalidTime,
        "^idempotency_window: must be from 0 to 100 years",
    ),
    "a window that is text": (
        {"idempotency_key": "k", "idempotency_window": "an hour"},
        InvalidTime,
        "^idempotency_window: 'an hour' is not a duration",
    ),
    "a window that is None": (
        {"idempotency_key": "k", "idempotency_window": None},
        InvalidTime,
        "^idempotency_window: None is not a duration",
    ),
    "a window without a key": (
        {"idempotency_window": 5},
        InvalidOption,
        "^idempotency_window: has no effect without an idempotency_key",
    ),
    "on_conflict without a key": (
        {"on_conflict": "raise"},
        InvalidOption,
        "^on_conflict: has no effect without an idempotency_key",
    ),
    "on_conflict of another kind": (
        {"idempotency_key": "k", "on_conflict": "ignore"},
        InvalidOption,
        "^on_conflict: 'ignore' is not one of existing, replace, raise",
    ),
    "on_conflict in capitals": (
        {"idempotency_key": "k", "on_conflict": "RAISE"},
        InvalidOption,
        "^on_conflict: 'RAISE' is not one of existing",
    ),
    "on_conflict that is a list": (
        {"idempotency_key": "k", "on_conflict": ["raise"]},
        InvalidOption,
        "^on_conflict: .* is not one of existing",
    ),
    "on_conflict of 1 MB": (
        {"idempotency_key": "k", "on_conflict": "x" * 2**20},
        InvalidOption,
        "^on_conflict: .* is not one of existing",
    ),
    "expires at once": ({"expires": 0}, InvalidOption, "^expires: must be more than 0 seconds"),
    "expires in the past": ({"expires": -1}, InvalidTime, "^expires: must be from 0 to 100 years"),
    "expires NaN": ({"expires": float("nan")}, InvalidTime, "^expires: must be from 0 to 100 years, not nan"),
    "expires as text": ({"expires": "soon"}, InvalidTime, "^expires: 'soon' is not a duration"),
    "expires at a naive moment": ({"expires": datetime(2026, 1, 1)}, InvalidTime, "^expires: has no time zone"),
    "expires in the year 9999": (
        {"expires": NOW.replace(year=9999)},
        InvalidTime,
        "^expires: .* is outside",
    ),
    "expires before it is due": (
        {"expires": 60, "delay": 60},
        InvalidOption,
        "^expires: is not after the time at which the job is due",
    ),
    "expires before its moment": (
        {"expires": NOW, "run_at": NOW + timedelta(hours=1)},
        InvalidOption,
        "^expires: is not after the time at which the job is due",
    ),
    "delay and run_at": ({"delay": 1, "run_at": NOW}, InvalidOption, "^delay: cannot be given together with run_at"),
    "an unknown option": (
        {"priorty": 1},
        InvalidOption,
        "^priorty: is not an option; did you mean priority\\? there are concurrency_key, connection",
    ),
}


BLOBS: dict[str, tuple[str, str]] = {
    "a store that we do not have": ("s3://token bucket/folder", "unknown blob store 's3'; this version has a folder"),
    "a host": ("file://host/folder", "write file:///absolute/folder"),
    "two slashes too few": ("file:folder", r"write a folder \(./blobs\) or file:///absolute/folder"),
    "the whole disk": ("/", "names no folder"),
    "blanks": ("   ", "is set but empty"),
    "NUL": ("a\x00b", "a control character"),
}
"""Addresses of a place for large payloads."""


WORDS: dict[str, tuple[list[str], str]] = {
    "45 negative": (["--delay", "-1"], "--delay: '-1' is not a duration such as 500ms, 30s"),
    "45 NaN": (["--delay", "nan"], "--delay: 'nan' is not a duration"),
    "45 1e300": (["--delay", "9" * 300], "--delay: must be from 0 to 100 years"),
    "45 10^400": (["--delay", "9" * 400], "--delay: must be from 0 to 100 years"),
    "45 true": (["--delay", "true"], "--delay: 'true' is not a duration"),
    "window": (["--key", "k", "--window", "soon"], "--window: 'soon' is not a duration such as 500ms, 30s"),
    "window without a key": (["--window", "1h"], "idempotency_window: has no effect without an idempotency_key"),
    "on_conflict": (
        ["--key", "k", "--on-conflict", "ignore"],
        "on_conflict: 'ignore' is not one of existing, replace, raise",
    ),
    "expires": (["--expires", "never"], "--expires: 'never' is not a duration"),
    "expires at once": (["--expires", "0"], "expires: must be more than 0 seconds"),
    "expires before it is due": (["--expires", "5", "--delay", "5"], "expires: is not after the time"),
    "meta that is not JSON": (["--meta", "{"], "--meta: is not JSON"),
    "meta that is no object": (["--meta", "[]"], "--meta: must be a JSON object, not list"),
    "a tag twice": (["--tag", "a", "--tag", "a"], "tags: has an entry twice"),
    "parent": (["--parent", "42"], "parent: '42' is not a UUID"),
    "46 priority 32768": (
        ["--priority", "32768"],
        "priority: must be a whole number from -32768 to 32767, not 32768",
    ),
    "46 priority -32769": (["--priority", "-32769"], "priority: must be a whole number from -32768 to 32767"),
    "46 priority 1.5": (["--priority", "1.5"], "Invalid value for '--priority'"),
    "46 priority true": (["--priority", "true"], "Invalid value for '--priority'"),
    "47 no attempts": (["--max-attempts", "0"], "max_attempts: must be a whole number from 1 to 1000, not 0"),
    "47 fewer than none": (["--max-attempts", "-1"], "max_attempts: must be a whole number from 1 to 1000, not -1"),
    "47 a milliard": (["--max-attempts", "1000000000"], "max_attempts: must be a whole number from 1 to 1000"),
    "50 empty key": (["--idempotency-key", ""], "idempotency_key: must be 1 to 4096 bytes without NUL, not 0 bytes"),
    "50 NUL in a key": (["--idempotency-key", "a\x00"], "idempotency_key: must be 1 to 4096 bytes without NUL"),
    "50 a key of 4097 bytes": (["--idempotency-key", "x" * 4097], "idempotency_key: must be 1 to 4096 bytes"),
    "50 surrogate in a key": (["--idempotency-key", "\ud800"], "idempotency_key: is not valid Unicode"),
}
"""Those of OPTIONS that a command line can say: its words, and what it answers."""

CHANGES: dict[str, tuple[dict[str, Any], type[InvalidInput], str]] = {
    "nothing": ({}, InvalidOption, "^change: nothing to change; there are priority, run_at, delay, payload, queue"),
    "priority 32768": ({"priority": 32768}, InvalidOption, "^priority: .* from -32768 to 32767, not 32768"),
    "priority true": ({"priority": True}, InvalidOption, "^priority: "),
    "naive run_at": ({"run_at": datetime(2026, 1, 1)}, InvalidTime, "^run_at: has no time zone"),
    "run_at as text": ({"run_at": "tomorrow"}, InvalidTime, "^run_at: must be a datetime, not str"),
    "delay NaN": ({"delay": float("nan")}, InvalidTime, "^delay: must be from 0 to 100 years"),
    "delay and run_at": ({"delay": 1, "run_at": NOW}, InvalidOption, "^delay: cannot be given together with run_at"),
    "queue with a space": ({"queue": "a b"}, InvalidName, "^queue: "),
    "empty queue": ({"queue": ""}, InvalidName, "^queue: "),
    "payload that is a list": ({"payload": [1]}, InvalidPayload, "^payload: must be a JSON object of arguments"),
    "payload of the wrong type": ({"payload": {"number": "1"}}, InvalidPayload, "^number: expected int, got str"),
    "payload with an unknown argument": ({"payload": {"nmuber": 1}}, InvalidPayload, "^nmuber: is not an argument"),
    "payload with NaN": ({"payload": {"thing": float("nan")}}, InvalidPayload, "^thing: nan is not JSON"),
    "payload over the limit": ({"payload": {"thing": "x" * 70_000}}, PayloadTooLarge, "^payload: .* limit is 65,536"),
}
"""Wrong changes of a waiting job."""

TEXTS: dict[str, tuple[str, str]] = {
    "8 duplicate keys": ('{"thing": 1, "thing": 2}', "payload: has a key twice"),
    "8 duplicate keys, deep": ('{"thing": {"a": [{"b": 1, "b": 1}]}}', "payload: has a key twice"),
    "10 depth 100,000": ('{"thing": ' + "[" * 100_000, "payload: is nested deeper than 64 levels"),
    "18 null": ("null", "payload: must be a JSON object, not NoneType"),
    "19 a byte order mark": ('\ufeff{"thing": 1}', "payload: is not JSON"),
    "19 bytes that are no UTF-8": ('{"thing": "\udcff"}', "thing: contains a lone surrogate"),
    "64 trailing data": ('{"thing": 1} {}', "payload: is not JSON: Extra data"),
    "64 not an object": ("[1]", "payload: must be a JSON object, not list"),
    "64 nothing": ("", "payload: is not JSON"),
    "64 Python, not JSON": ("{'thing': None}", "payload: is not JSON"),
}
"""JSON text that only a command line can get wrong."""
