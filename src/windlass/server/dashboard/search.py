"""The search of jobs: `type:mail.welcome status:dead`, as filters of the list."""

from typing import Any

import msgspec

from windlass.core.status import Status
from windlass.server.jobs import JobQuery

FIELDS = ("type", "status", "queue", "tag", "tenant", "schedule", "parent", "id")
MIN_PART = 4
"""Characters of an id that are enough to search for it."""


class Search(msgspec.Struct, frozen=True):
    """What a text asks for: filters of the list, a part of an id, and what is wrong with it."""

    filters: dict[str, Any]
    id: str = ""
    problem: str = ""


def parse_search(text: str) -> Search:
    """A text with `field:value` words; a word alone is an id if it looks like one, else a type."""
    filters: dict[str, Any] = {}
    id_ = ""
    for word in text.split():
        field, colon, value = word.partition(":")
        if not colon or field not in FIELDS:
            if colon and field.isalpha():
                return Search({}, problem=f"{field}: is not a filter; there are {', '.join(FIELDS)}")
            field, value = ("id" if _is_part(word) else "type"), word
        if not value:
            return Search({}, problem=f"{field}: has no value")
        if field == "id":
            id_ = value.lower()
        elif field == "status":
            filters.setdefault("status", []).extend(each for each in value.split(",") if each)
        elif field in filters:
            return Search({}, problem=f"{field}: is given twice")
        else:
            filters[field] = value
    if wrong := [each for each in filters.get("status", []) if each not in set(Status)]:
        return Search({}, problem=f"status: {wrong[0]!r} is not one of {', '.join(Status)}")
    return Search(filters, id_)


def search_text(query: JobQuery) -> str:
    """The text of a filter."""
    words = []
    for field, value in query.wanted.items():
        words.append(f"{field}:{','.join(value) if isinstance(value, tuple) else value}")
    return " ".join(words)


def _is_part(word: str) -> bool:
    """Whether it is part of an id: hexadecimal digits and hyphens, and at least one digit."""
    return len(word) >= MIN_PART and not set(word.lower()) - set("0123456789abcdef-") and any(map(str.isdigit, word))
