"""The search of jobs as text: `type:mail.* status:dead error:Timeout payload.user_id:42`."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from windlass.core.search import SearchTerms, check_terms, payload_term
from windlass.core.status import Status
from windlass.errors import InvalidOption

FIELDS = ("type", "status", "queue", "tag", "tenant", "schedule", "parent", "id", "error")
MIN_PART = 4
"""Characters of an id that are enough to search for it."""
_WORD = re.compile(r'[^\s":]+:"[^"]*"|\S+')
_PAYLOAD = "payload."


class Search(msgspec.Struct, frozen=True):
    """A parsed search: filters of the list, terms without an index, a part of an id; or the problem with it."""

    filters: dict[str, Any]
    terms: SearchTerms = SearchTerms()
    id: str = ""
    problem: str = ""


def parse_search(text: str) -> Search:
    """A text with `field:value` words; a word alone is an id if it looks like one, else a type."""
    given: dict[str, list[str]] = {}
    for word in _WORD.findall(text):
        field, colon, value = word.partition(":")
        if not colon or not _is_field(field):
            if colon and field.replace(".", "").isalpha():
                return Search({}, problem=f"{field}: is not a filter; there are {', '.join(FIELDS)}, payload.…")
            field, value = ("id" if _is_part(word) else "type"), word
        value = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
        if not value:
            return Search({}, problem=f"{field}: has no value")
        if field in given and field != "status":
            return Search({}, problem=f"{field}: is given twice")
        given.setdefault(field, []).append(value)
    return make_search(given)


def make_search(given: Mapping[str, Any]) -> Search:
    """The search of fields with their values."""
    filters: dict[str, Any] = {}
    statuses = [each for value in given.get("status", ()) for each in value.split(",") if each]
    if wrong := [each for each in statuses if each not in set(Status)]:
        return Search({}, problem=f"status: {wrong[0]!r} is not one of {', '.join(Status)}")
    if statuses:
        filters["status"] = statuses
    for field in ("type", "queue", "tag", "tenant", "schedule", "parent"):
        if field in given and not (field == "type" and "*" in given[field][0]):
            filters[field] = given[field][0]
    try:
        terms = check_terms(
            SearchTerms(
                type="" if "type" in filters else next(iter(given.get("type", ())), ""),
                error=next(iter(given.get("error", ())), ""),
                payload=tuple(
                    payload_term(name, each[0]) for name, each in given.items() if name.startswith(_PAYLOAD)
                ),
            )
        )
    except InvalidOption as error:
        return Search({}, problem=str(error))
    return Search(filters, terms, next(iter(given.get("id", ())), "").lower())


def search_fields(search: Search) -> dict[str, Any]:
    """The search as fields of an address."""
    terms = search.terms
    said = {**search.filters, "type": search.filters.get("type") or terms.type, "error": terms.error}
    said |= {_PAYLOAD + ".".join(term.path): term.value for term in terms.payload}
    return {name: value for name, value in said.items() if value}


def search_text(search: Search) -> str:
    """The text of a search."""
    return " ".join(f"{name}:{_quoted(value)}" for name, value in search_fields(search).items())


def _quoted(value: Any) -> str:
    text = ",".join(value) if isinstance(value, list | tuple) else str(value)
    return f'"{text}"' if re.search(r"\s", text) else text


def _is_field(field: str) -> bool:
    return field in FIELDS or field.startswith(_PAYLOAD)


def _is_part(word: str) -> bool:
    """Whether the text is part of an id: hexadecimal digits and hyphens, and at least one digit."""
    return len(word) >= MIN_PART and not set(word.lower()) - set("0123456789abcdef-") and any(map(str.isdigit, word))
