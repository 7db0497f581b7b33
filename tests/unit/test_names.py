"""Names, keys and ids: what may be called what."""

import re
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.ids import check_id, new_id, new_runner_id
from windlass.core.names import MAX_KEY_LENGTH, MAX_NAME_LENGTH, check_key, check_name, type_of
from windlass.errors import InvalidName


@pytest.mark.parametrize("name", ["a", "mail.welcome", "Mail:v2", "_x", "0", "a-b_c", "x" * MAX_NAME_LENGTH])
def test_ordinary_names_are_taken_as_they_are(name: str) -> None:
    assert check_name(name, "queue") == name


@pytest.mark.parametrize(
    "bad",
    [
        "",
        "x" * (MAX_NAME_LENGTH + 1),
        "a b",
        "a\n",
        "a\x00",
        "{x}",
        "*",
        "../x",
        "a..b",
        ".a",
        "-a",
        ":a",
        "'; DROP TABLE",
        '"',
        "\\",
        "ü",
        "🦆",
        "\u202ea",
        "<script>",
        "\ud800",
        None,
        1,
        b"a",
        ["a"],
    ],
)
def test_names_that_are_unsafe_anywhere_are_refused_everywhere(bad: Any) -> None:
    with pytest.raises(InvalidName, match="queue"):
        check_name(bad, "queue")


@given(st.text())
def test_a_name_is_safe_or_refused(name: str) -> None:
    try:
        check_name(name, "queue")
    except InvalidName:
        return
    assert re.fullmatch(r"[\w.:-]{1,128}", name, re.ASCII)


@pytest.mark.parametrize("key", ["k", "order 42/ü", "x" * MAX_KEY_LENGTH, " ", "\n"])
def test_keys_are_free_text(key: str) -> None:
    assert check_key(key, "key") == key


@pytest.mark.parametrize(
    "bad", ["", "x" * (MAX_KEY_LENGTH + 1), "ü" * (MAX_KEY_LENGTH // 2 + 1), "a\x00b", "\ud800", None, 7, b"k"]
)
def test_keys_that_are_empty_too_long_or_not_unicode_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidName, match="key"):
        check_key(bad, "key")


def test_a_type_is_the_qualified_name_without_the_functions_it_was_made_in() -> None:
    assert type_of("send") == "send"
    assert type_of("make.<locals>.send") == "send"
    assert type_of("a.<locals>.b.<locals>.C.send") == "C.send"


def test_new_ids_are_uuid7_and_grow() -> None:
    ids = [new_id() for _ in range(1000)]
    assert ids == sorted(set(ids))
    assert {UUID(id_).version for id_ in ids} == {7}


def test_an_id_has_one_spelling() -> None:
    id_ = new_id()
    assert check_id(id_.upper()) == id_
    assert check_id(UUID(id_)) == id_


@pytest.mark.parametrize(
    "bad",
    ["", "x", "../" + "0" * 33, "0" * 32, "{" + new_id() + "}", new_id() + "\n", "a" * 10**6, 7, None],
    ids=[str(place) for place in range(9)],
)
def test_what_is_no_uuid_is_refused_shortly(bad: Any) -> None:
    with pytest.raises(InvalidName) as refused:
        check_id(bad)
    assert len(str(refused.value)) < 200


def test_runner_ids_come_from_the_given_source() -> None:
    assert new_runner_id(lambda n: b"\xab" * n) == "ab" * 5
