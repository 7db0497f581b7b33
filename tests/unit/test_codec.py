"""Payloads: what JSON keeps goes through unchanged, what it would lose is refused."""

from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import IntEnum
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.codec import (
    INLINE_LIMIT,
    MAX_DEPTH,
    MAX_NODES,
    check_json,
    check_size,
    decode,
    decode_object,
    encode,
    encode_object,
)
from windlass.errors import InvalidPayload, PayloadTooLarge

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


class Colour(IntEnum):
    RED = 1


class Model(pydantic.BaseModel):
    """Aliases and strictness are what a plain dump and validation get wrong."""

    model_config = pydantic.ConfigDict(strict=True)
    user_id: int = pydantic.Field(alias="userId")
    since: datetime


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@given(values)
def test_json_values_survive_the_way_there_and_back(value: Any) -> None:
    check_json(value, "payload")
    back = decode(encode(value, "payload"))
    assert back == value
    assert repr(back) == repr(value), "1.0 stays 1.0, -0.0 stays -0.0, the order of keys stays"


@pytest.mark.parametrize(
    "bad",
    [
        float("nan"),
        float("inf"),
        float("-inf"),
        2**63,
        -(2**63) - 1,
        10**5000,
        {1: "a"},
        {1: "a", "1": "b"},
        {None: 1},
        b"bytes",
        {1, 2},
        Decimal(1),
        datetime.now(UTC),
        object(),
        Colour.RED,
        nested(MAX_DEPTH + 1),
        nested(100_000),
        [0] * MAX_NODES,
    ],
    ids=lambda bad: type(bad).__name__,
)
def test_what_json_would_lose_or_change_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidPayload) as refused:
        check_json({"x": bad}, "payload")
    assert len(str(refused.value)) < 300


def test_a_refusal_names_the_place() -> None:
    with pytest.raises(InvalidPayload, match=r"^payload\.users\[1\]\.age: nan is not JSON"):
        check_json({"users": [{"age": 1}, {"age": float("nan")}]}, "payload")


def test_a_value_that_contains_itself_is_refused() -> None:
    wide: list[Any] = []
    wide += [wide, wide, wide]
    deep: dict[str, Any] = {}
    deep["me"] = deep
    for bad in (wide, deep):
        with pytest.raises(InvalidPayload):
            check_json(bad, "payload")


def test_the_deepest_and_largest_allowed_are_allowed() -> None:
    for value in (nested(MAX_DEPTH), [0] * (MAX_NODES - 1)):
        check_json(value, "payload")
        assert decode(encode(value, "payload")) == value


@pytest.mark.parametrize("bad", ["\ud800", {"\udfff": 1}, ["a", "\ud800b"]])
def test_a_lone_surrogate_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidPayload, match="surrogate"):
        encode(bad, "payload")


@dataclass
class Point:
    x: Any


class Grumpy:
    def model_dump(self, mode: str) -> Any:
        raise ValueError("not today")


@pytest.mark.parametrize(
    "good", [Point(1.5), [Point(Point(1))], {1, 2}, Decimal(1), datetime.now(UTC), Colour.RED, {1: "a"}]
)
def test_a_typed_check_lets_objects_through(good: Any) -> None:
    check_json(good, "payload", typed=True)
    assert encode(good, "payload")


@pytest.mark.parametrize(
    "bad",
    [float("nan"), 2**64, Point(float("inf")), Point([2**64]), object(), Point(object()), Grumpy()],
    ids=lambda each: repr(each).partition(" at ")[0],
)
def test_a_typed_check_refuses_what_json_would_lose_also_inside_of_objects(bad: Any) -> None:
    with pytest.raises(InvalidPayload):
        check_json([bad], "payload", typed=True)


def test_objects_that_contain_themselves_are_refused() -> None:
    me = Point(None)
    me.x = me
    with pytest.raises(InvalidPayload, match="contains itself"):
        check_json(me, "payload", typed=True)
    with pytest.raises(InvalidPayload, match="contains itself"):
        encode(me, "payload")


def test_encoding_refuses_what_is_not_json() -> None:
    with pytest.raises(InvalidPayload):
        encode({"x": object()}, "payload")


def test_models_of_other_libraries_go_by_their_own_dump_and_validation() -> None:
    model = Model(userId=3, since=datetime(2026, 1, 2, tzinfo=UTC))
    text = encode({"m": model}, "payload")
    assert text == '{"m":{"userId":3,"since":"2026-01-02T00:00:00Z"}}'
    assert decode_object(Model, {"userId": 3, "since": "2026-01-02T00:00:00Z"}) == model
    with pytest.raises(TypeError):
        encode_object(object())
    with pytest.raises(TypeError):
        decode_object(int, 1)


def test_subclasses_of_plain_types_are_stored_as_what_they_are() -> None:
    class Safe(str):
        def __str__(self) -> str:
            return self

    class Count(int):
        pass

    class Share(float):
        pass

    assert encode({"s": Safe("x"), "n": Count(3), "f": Share(0.5)}, "payload") == '{"s":"x","n":3,"f":0.5}'


@pytest.mark.parametrize("letter", ["x", "ü", "🦆"])
def test_the_limit_counts_bytes_of_text(letter: str) -> None:
    fits = letter * (INLINE_LIMIT // len(letter.encode()))
    assert check_size(fits, "payload") == fits
    with pytest.raises(PayloadTooLarge, match=r"65,5\d\d bytes .* 65,536"):
        check_size(fits + letter, "payload")
