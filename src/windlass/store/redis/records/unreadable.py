"""Packed values that were edited by hand: readable fields are read, so that one job does not hide others.

The reader of such a text reports what is wrong with it: a payload that is not JSON makes its job dead.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

Kind = TypeVar("Kind", bound=msgspec.Struct)
UNREADABLE = "unreadable"
"""Instead of a required text."""

_INTEGERS = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
_LENGTHS = {0xD9: 1, 0xDA: 2, 0xDB: 4, 0xC4: 1, 0xC5: 2, 0xC6: 4}


def decode_text(value: bytes) -> str:
    """The text; bytes that are not UTF-8 are written as escapes."""
    return value.decode("utf-8", "backslashreplace")


def reader(kind: type[Kind]) -> Callable[[bytes], Kind]:
    """Reads what is packed as an array of fields."""
    decode = msgspec.msgpack.Decoder(kind).decode

    def read(value: bytes) -> Kind:
        try:
            return decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return _repaired(kind, value)

    return read


def _repaired(kind: type[Kind], value: bytes) -> Kind:
    """Decode each field by itself, as far as they can be separated."""
    found = _parts(value)
    fields = msgspec.structs.fields(kind)
    values = [_fitting(part, field.type) for part, field in zip(found, fields, strict=False)]
    if fields[0].required and (not values or values[0] is None):
        values[:1] = [UNREADABLE]
    return kind(*values)


def _fitting(part: Any, wanted: Any) -> Any:
    for each in (part, str(part)):
        try:
            return msgspec.convert(each, wanted)
        except msgspec.ValidationError:
            continue
    return None


def _parts(value: bytes) -> list[Any]:
    """The members of an array, up to the first that is none of the kinds that we write."""
    if not value or (value[0] & 0xF0 != 0x90 and value[0] != 0xDC):
        return []
    at = 1 if value[0] != 0xDC else 3
    found: list[Any] = []
    while at < len(value):
        part, at = _part(value, at)
        found.append(part)
    return found


def _part(value: bytes, at: int) -> tuple[Any, int]:
    """One value, and where the next begins."""
    code, at = value[at], at + 1
    if code < 0x80:
        return code, at
    if code & 0xF0 == 0x90:
        members = []
        for _ in range(code & 0x0F):
            member, at = _part(value, at) if at < len(value) else (None, at)
            members.append(member)
        return members, at
    if size := _INTEGERS.get(code):
        return int.from_bytes(value[at : at + size], "big", signed=code >= 0xD0), at + size
    if code & 0xE0 == 0xA0:
        return decode_text(value[at : at + (code & 0x1F)]), at + (code & 0x1F)
    if size := _LENGTHS.get(code):
        end = at + size + int.from_bytes(value[at : at + size], "big")
        return decode_text(value[at + size : end]), end
    return {0xC2: False, 0xC3: True}.get(code), at
