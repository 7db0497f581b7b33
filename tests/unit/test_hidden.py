"""Hidden fields: which ones a rule names, and how an edited payload keeps them."""

from typing import Any

import pytest

from windlass.core.hidden import HIDDEN, conceal, parse_hidden, reveal
from windlass.errors import InvalidOption, InvalidPayload

ORDER: dict[str, Any] = {
    "user": "ann",
    "Password": "p",
    "card": {"number": "4111", "cvc": 1, "owner": {"number": 7}},
    "lines": [{"sku": "a", "password": ["x"]}, {"sku": "b", "token": {"a": 1}}],
}


@pytest.mark.parametrize(
    ("rules", "changed"),
    [
        ([], {}),
        (["missing"], {}),
        (["password"], {"Password": HIDDEN, "lines": [{"sku": "a", "password": HIDDEN}, ORDER["lines"][1]]}),
        (["card.number"], {"card": {"number": HIDDEN, "cvc": 1, "owner": {"number": 7}}}),
        (["CARD"], {"card": HIDDEN}),
        (["*.cvc"], {"card": {"number": "4111", "cvc": HIDDEN, "owner": {"number": 7}}}),
        (["lines.token"], {"lines": [ORDER["lines"][0], {"sku": "b", "token": HIDDEN}]}),
    ],
)
def test_a_rule_hides_a_name_at_any_depth_or_a_path(rules: list[str], changed: dict[str, Any]) -> None:
    before = repr(ORDER)
    assert conceal(ORDER, parse_hidden(rules)) == {**ORDER, **changed}
    assert repr(ORDER) == before


@pytest.mark.parametrize("rule", ["", ".", "a.", "*", "x" * 201])
def test_a_rule_that_names_nothing_is_refused(rule: str) -> None:
    with pytest.raises(InvalidOption, match="hide"):
        parse_hidden([rule])
    with pytest.raises(InvalidOption, match="at most 100"):
        parse_hidden(["a"] * 101)


@pytest.mark.parametrize("value", [None, 1, "text", [1, "a"], [[{"password": 1}]]])
def test_any_value_may_be_hidden_in(value: Any) -> None:
    assert "1" not in repr(conceal([[{"password": 1}]], parse_hidden(["password"])))
    assert conceal(value, parse_hidden(["other"])) == value


def test_an_edited_payload_keeps_what_was_hidden() -> None:
    fields = parse_hidden(["password", "card.number"])
    edited = conceal(ORDER, fields)
    assert reveal(edited, ORDER, fields) == ORDER
    assert reveal({**edited, "user": "bob"}, ORDER, fields) == {**ORDER, "user": "bob"}
    assert reveal({**edited, "Password": "new"}, ORDER, fields) == {**ORDER, "Password": "new"}


def test_a_hidden_value_goes_nowhere_else() -> None:
    fields = parse_hidden(["password"])
    edited = conceal(ORDER, fields)
    for wrong in (
        {"password": HIDDEN},
        {**edited, "card": {"password": HIDDEN}},
        {**edited, "lines": [*edited["lines"], {}]},
        {**edited, "lines": [edited["lines"][1], edited["lines"][0]]},
    ):
        with pytest.raises(InvalidPayload, match="is hidden: give its value"):
            reveal(wrong, ORDER, fields)
    assert reveal({"user": HIDDEN}, ORDER, fields) == {"user": HIDDEN}, "only a hidden field's text has this meaning"


def test_a_search_into_a_hidden_field_is_known() -> None:
    fields = parse_hidden(["password", "card.number"])
    assert all(map(fields.covers, ("password", "user.Password", "password.a", "card.number", "card.number.x")))
    assert not any(map(fields.covers, ("card", "number", "user")))
