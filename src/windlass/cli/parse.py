"""The values of options: durations, moments, JSON objects, addresses and sizes from text."""

import json
import re
from datetime import UTC, datetime
from typing import Any

from windlass.core.codec import MAX_DEPTH
from windlass.core.moments import SECOND, parse_duration
from windlass.errors import ConfigError, InvalidPayload, InvalidTime

_UNITS: dict[str, int] = {"": 1, "B": 1} | {
    f"{unit}{end}": 1024**power for power, unit in enumerate("KMGT", 1) for end in ("B", "IB")
}
_BYTES = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,3})?)\s*(|B|[KMGT]i?B)", re.IGNORECASE)


def seconds(text: str | None, option: str) -> float | None:
    """A duration in seconds."""
    return None if text is None else parse_duration(text, option) / SECOND


def parse_object(text: str, field: str) -> dict[str, Any]:
    """A JSON object, strictly: no NaN, no duplicate keys."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise InvalidPayload(field, "has a key twice")
        return found

    def whole(digits: str) -> int:
        # Enough digits to be refused with its position; Python would not read thousands.
        return int(digits[:25])

    try:
        value = json.loads(text, object_pairs_hook=unique, parse_int=whole)
    except RecursionError:
        raise InvalidPayload(field, f"is nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise InvalidPayload(field, f"is not JSON: {error}; write it as '{{\"user_id\": 42}}'") from None
    if not isinstance(value, dict):
        raise InvalidPayload(field, f"must be a JSON object, not {type(value).__name__}")
    return value


def moment(text: str, option: str) -> datetime:
    """A moment; UTC, unless the text has an offset."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidTime(option, f"{text!r} is not a moment such as 2026-01-31T09:00+01:00") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def parse_host(text: str) -> tuple[str, int]:
    """127.0.0.1:8322, [::1]:8322."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"--health {text!r} should be HOST:PORT")
    return host.strip("[]"), int(port)


def parse_bytes(text: str, field: str) -> int:
    """512MB, 2GB, 1.5GiB, or plain bytes."""
    match = _BYTES.fullmatch(text.strip())
    if match is None:
        raise ConfigError(f"{field} {text!r:.100} should be a size such as 512MB or 2GB")
    return int(float(match[1]) * _UNITS[match[2].upper()])
