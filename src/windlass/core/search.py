"""Searches in fields that no index covers: what a job must match, and texts that its stored fields must contain.

A store filters by `needles`, which is fast but not exact; `matches` decides.
"""

import json
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec

from windlass.core.jobs.job import Job
from windlass.errors import InvalidOption

MAX_TERMS = 10
MAX_TEXT = 200
MAX_DEPTH = 10
Field = Literal["type", "error", "payload"]


class PayloadTerm(msgspec.Struct, frozen=True):
    """A value in the payload: its path, and its text."""

    path: tuple[str, ...]
    value: str


class SearchTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What a job must match besides its filter; `*` stands for any characters."""

    type: str = ""
    error: str = ""
    """In the type or the message of its error; case is ignored."""
    payload: tuple[PayloadTerm, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.type or self.error or self.payload)


class Contains(msgspec.Struct, frozen=True):
    """The stored text of a field contains this; in `error` ASCII letters are compared in lower case."""

    field: Field
    text: str


def payload_term(name: str, value: str) -> PayloadTerm:
    """The term of `payload.user.id` and a value; raises InvalidOption."""
    path = tuple(name.split(".")[1:])
    if not path or not all(path) or len(path) > MAX_DEPTH or len(name) > MAX_TEXT:
        limits = f"at most {MAX_DEPTH} names and {MAX_TEXT} characters"
        raise InvalidOption(name[:100], f"is not a path in a payload, such as payload.user.id, of {limits}")
    return PayloadTerm(path, value)


def check_terms(terms: SearchTerms) -> SearchTerms:
    """Refuse terms beyond the limits of a search."""
    if len(terms.payload) > MAX_TERMS:
        raise InvalidOption("payload", f"has {len(terms.payload)} terms, the limit is {MAX_TERMS}")
    for name, text in (
        ("type", terms.type),
        ("error", terms.error),
        *((".".join(t.path), t.value) for t in terms.payload),
    ):
        if len(text) > MAX_TEXT:
            raise InvalidOption(name[:100], f"has {len(text)} characters, the limit is {MAX_TEXT}")
    return terms


def needles(terms: SearchTerms) -> tuple[Contains, ...]:
    """Texts that the fields of every matching job contain."""
    found = [Contains("type", _longest(terms.type)), Contains("error", _ascii(terms.error))]
    for term in terms.payload:
        found += [Contains("payload", _json(name)) for name in term.path if not name.isdecimal()]
        found.append(Contains("payload", _json(_longest(term.value))[1:-1]))
    return tuple(dict.fromkeys(each for each in found if each.text))


def matches(terms: SearchTerms, job: Job) -> bool:
    """Whether a job matches every term."""
    if terms.type and not like(job.type, terms.type):
        return False
    if terms.error and not _has_error(job, terms.error):
        return False
    return all(any(_is(value, term.value) for value in _at(job.payload, term.path)) for term in terms.payload)


def like(text: str, pattern: str) -> bool:
    """Whether a text matches a pattern, in which `*` stands for any characters."""
    return fnmatchcase(text, pattern.replace("[", "[[]").replace("?", "[?]"))


def _has_error(job: Job, text: str) -> bool:
    if job.error is None:
        return False
    wanted = f"*{text.lower()}*"
    return like(job.error.type.lower(), wanted) or like(job.error.message.lower(), wanted)


def _at(value: Any, path: tuple[str, ...]) -> list[Any]:
    """The values at a path. A list stands for all of its elements; a number in the path selects one."""
    if isinstance(value, list) and not (path and path[0].isdecimal()):
        return [found for each in value for found in _at(each, path)]
    if not path:
        return [value]
    if isinstance(value, list):
        index = int(path[0])
        return _at(value[index], path[1:]) if index < len(value) else []
    return _at(value[path[0]], path[1:]) if isinstance(value, dict) and path[0] in value else []


def _is(value: Any, text: str) -> bool:
    if isinstance(value, str):
        return like(value, text)
    return not isinstance(value, dict) and json.dumps(value) == text


def _json(text: str) -> str:
    """The text as JSON escapes it in stored payloads."""
    return msgspec.json.encode(text).decode()


def _longest(pattern: str) -> str:
    return max(pattern.split("*"), key=len)


def _ascii(text: str) -> str:
    """The longest part that JSON does not escape, in lower case."""
    plain = "".join(
        char.lower() if char.isascii() and char.isprintable() and char not in '*"\\' else "*" for char in text
    )
    return _longest(plain)
