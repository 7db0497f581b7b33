"""Values ↔ JSON text, within limits that hold on every store.

A payload is opaque text from here on: no store parses it, so none can change it.
"""

from typing import Any

import msgspec

from windlass.core.reference import parse_reference
from windlass.errors import InvalidPayload, PayloadTooLarge

INLINE_LIMIT = 64 * 1024
_MAX_BYTES = 4
"""Of a character in UTF-8."""
MAX_DEPTH = 64
MAX_NODES = INLINE_LIMIT
"""No payload that fits inline has more: a value takes at least one byte."""
_MAX_INT = 2**63 - 1


def encode(value: Any, field: str) -> str:
    """JSON text of a value that already passed `check_json` or a typed check."""
    try:
        return _encoder.encode(value).decode()
    except Exception as error:
        # `model_dump` of a user's object may raise anything.
        raise InvalidPayload(field, _sentence(error)) from None


def size_of(text: str) -> int:
    """The length in bytes of UTF-8; ASCII text is not encoded for this."""
    return len(text) if text.isascii() else len(text.encode())


def check_size(text: str, field: str, limit: int | None = None) -> str:
    """Return the text; raise PayloadTooLarge if it is longer than the limit (default: what fits into a row)."""
    most = limit or INLINE_LIMIT
    if len(text) <= most // _MAX_BYTES:
        return text
    if (size := size_of(text)) > most:
        advice = "keep large data elsewhere and pass a reference"
        if limit == INLINE_LIMIT:
            advice += ", or give the app a folder for it: App(blobs=...) or WINDLASS_BLOBS"
        raise PayloadTooLarge(field, f"is {size:,} bytes of JSON, the limit is {most:,}; {advice}", limit=most)
    return text


def decode(text: str) -> Any:
    """The value of stored JSON text."""
    return msgspec.json.decode(text)


UNREADABLE = (msgspec.MsgspecError, ValueError, TypeError)
"""What a decoder raises for a stored value that was edited by hand."""


def readable(stored: Any) -> Any:
    """The value, or the text itself if it cannot be decoded: one row edited by hand must not hide all others."""
    try:
        return decode(stored)
    except UNREADABLE:
        return stored.decode("utf-8", "backslashreplace") if isinstance(stored, bytes) else str(stored)


def readable_value(stored: Any) -> Any:
    """The value of a payload or result, or the Reference to it."""
    return parse_reference(stored) or readable(stored)


UNSTORABLE = "unstorable_result"
"""The only key of the note that is stored in place of a result that cannot be kept."""
_UNSTORABLE_START = f'{{"{UNSTORABLE}"'


def problem_of_result(text: str | None) -> str | None:
    """Why a result was not kept, if the stored text is such a note."""
    return unstorable_problem(decode(text)) if text is not None and is_unstorable(text) else None


def is_unstorable(text: str | None) -> bool:
    """Whether the stored text begins like such a note."""
    return text is not None and text.startswith(_UNSTORABLE_START)


def unstorable_problem(result: Any) -> str | None:
    """As `problem_of_result`, for a decoded result."""
    return str(result[UNSTORABLE]) if isinstance(result, dict) and result.keys() == {UNSTORABLE} else None


def readable_tags(stored: Any) -> tuple[str, ...]:
    """The tags; a value that is not a list counts as no tags."""
    found = readable(stored) if stored else ()
    return tuple(map(str, found)) if isinstance(found, list) else ()


def check_json(value: Any, field: str, *, typed: bool = False, most: int = MAX_NODES) -> None:
    """Refuse what JSON would lose or change: NaN, huge integers, keys that are not strings, cycles.

    With `typed`, objects that a type annotation restores on the other side may pass if their content fits JSON.
    `most` is the maximum number of values.
    """
    kind = type(value)
    if (kind is str and value.isascii()) or (kind is int and -_MAX_INT <= value <= _MAX_INT):  # most arguments
        return
    stack: list[tuple[Any, str, int]] = [(value, field, 0)]
    nodes = 0
    while stack:
        item, path, depth = stack.pop()
        nodes += 1
        if nodes > most:
            raise InvalidPayload(field, f"has more than {most:,} values", limit=most)
        if depth > MAX_DEPTH:
            problem = f"is nested deeper than {MAX_DEPTH} levels, or contains itself"
            raise InvalidPayload(field, problem, limit=MAX_DEPTH)
        kind = type(item)
        if kind is bool or item is None:
            continue
        if kind is str:
            _check_text(item, path)
        elif kind is int:
            _check_int(item, path)
        elif kind is float:
            _check_float(item, path)
        elif isinstance(item, dict):
            stack.extend(_entries(item, path, depth, typed))
        elif isinstance(item, list | tuple):
            stack.extend((child, f"{path}[{i}]", depth + 1) for i, child in enumerate(item))
        elif typed:
            stack.append((_plain(item, path), path, depth))
        else:
            raise InvalidPayload(path, f"{kind.__name__} is not JSON; annotate the parameter, or convert it")


def _entries(item: dict[Any, Any], path: str, depth: int, typed: bool) -> list[tuple[Any, str, int]]:
    if not typed and not all(type(key) is str for key in item):
        raise InvalidPayload(path, "has keys that are not strings")
    for key in item:
        if type(key) is str:
            _check_text(key, path)
    return [(child, f"{path}.{key}", depth + 1) for key, child in item.items()]


def _plain(item: Any, path: str) -> Any:
    try:
        return msgspec.to_builtins(item, enc_hook=encode_object)
    except Exception as error:
        raise InvalidPayload(path, _sentence(error)) from None


def _check_text(item: str, path: str) -> None:
    try:
        item.isascii() or item.encode()
    except UnicodeEncodeError as error:
        raise InvalidPayload(path, _sentence(error)) from None


def _check_int(item: int, path: str) -> None:
    if not -_MAX_INT - 1 <= item <= _MAX_INT:
        raise InvalidPayload(path, "is an integer beyond 64 bits; send it as a string")


def _check_float(item: float, path: str) -> None:
    if item != item or item in (float("inf"), float("-inf")):
        raise InvalidPayload(path, f"{item} is not JSON")


def encode_object(value: Any) -> Any:
    """How objects of other libraries become JSON: pydantic models by their own dump."""
    # Subclasses of plain types, such as safe strings, are stored as plain values.
    if isinstance(value, str):
        return "".join(value)
    if isinstance(value, int | float):
        return int(value) if isinstance(value, int) else float(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json", by_alias=True)
    instead = "a dataclass, a msgspec struct, a pydantic model or plain values can"
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON; {instead}")


def decode_object(kind: type, value: Any) -> Any:
    """The inverse of `encode_object`: pydantic models by their own validation, Windlass's types by
    `restore_from_json`.
    """
    # From JSON, not from the parsed value: a strict model accepts a date as text only in JSON.
    validate = getattr(kind, "model_validate_json", None)
    if callable(validate):
        return validate(msgspec.json.encode(value))
    restore = getattr(kind, "restore_from_json", None)
    if callable(restore):
        return restore(kind, value)
    raise TypeError(f"{kind.__name__} cannot be restored from JSON")


def _sentence(error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "contains a lone surrogate, which is not valid Unicode"
    if isinstance(error, RecursionError):
        return f"is nested deeper than {MAX_DEPTH} levels, or contains itself"
    return str(error)


_encoder = msgspec.json.Encoder(enc_hook=encode_object)
