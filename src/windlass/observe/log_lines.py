"""Log records as lines: for people, as JSON, or as logfmt. docs/guides/monitoring.md has the fields of the last two.

The same formatters serve our events and what handlers log, so that both have the fields of their job.
"""

import json
import logging
import re
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from windlass.core.events import Event
from windlass.core.text import printable

LogFormat = Literal["text", "json", "logfmt"]
_RENAMED = {"seconds": "duration", "runner": "worker"}
"""Fields of events that have one name in lines."""
_JOB_FIELDS = {
    "job": "windlass_job_id",
    "type": "windlass_job_type",
    "queue": "windlass_queue",
    "attempt": "windlass_attempt",
    "trace": "windlass_trace_id",
    "span": "windlass_span_id",
}
"""Fields of records that are made inside a handler."""
_NOTHING = (None, "", "-", 0)
_UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_PLAIN = re.compile(r"[^\s\"=\\]+")


def time_of(record: logging.LogRecord) -> str:
    """When it was logged, for a line."""
    when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    return when.replace("+00:00", "Z")


class Lines(logging.Formatter):
    """One line per record, whatever the text contains."""

    def format(self, record: logging.LogRecord) -> str:
        text = printable(record.getMessage()).replace("\n", " ⏎ ")
        return f"{time_of(record)} {record.levelname:7} {text}"


class ForTerminal(logging.Formatter):
    """One line per record, for a terminal: local time of day, and a colour for warnings and errors."""

    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S.%f")[:-3]
        text = printable(record.getMessage()).replace("\n", " ⏎ ")
        colour = "31" if record.levelno >= logging.ERROR else "33" if record.levelno >= logging.WARNING else "0"
        return f"\x1b[2m{when}\x1b[0m \x1b[{colour}m{text}\x1b[0m"


def fields(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a record: time, level, message; then those of its event, or of the job it was logged in."""
    event = getattr(record, "event", None)
    about = _of_event(event) if isinstance(event, Event) else _of_job(record)
    return {
        "at": time_of(record),
        "level": record.levelname.lower(),
        "logger": record.name,
        "event": _name(type(event).__name__) if isinstance(event, Event) else "log",
        "message": record.getMessage(),
        **about,
    }


def _of_event(event: Event) -> dict[str, Any]:
    found = msgspec.to_builtins(event)
    return {_RENAMED.get(name, name): value for name, value in found.items() if value is not None and value != ""}


def _of_job(record: logging.LogRecord) -> dict[str, Any]:
    found = {name: getattr(record, attribute, None) for name, attribute in _JOB_FIELDS.items()}
    about = {name: value for name, value in found.items() if value not in _NOTHING}
    if record.exc_info and record.exc_info[1] is not None:
        error = record.exc_info[1]
        about["error"] = f"{type(error).__name__}: {error}"
        about["traceback"] = logging.Formatter().formatException(record.exc_info)
    return about


def _name(kind: str) -> str:
    """AttemptEnded → attempt_ended."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", kind).lower()


class JsonLines(logging.Formatter):
    """One JSON object per record."""

    def format(self, record: logging.LogRecord) -> str:
        return _json(fields(record))


class LogfmtLines(logging.Formatter):
    """One line of key=value per record; a value with other than plain characters is a JSON string."""

    def format(self, record: logging.LogRecord) -> str:
        return " ".join(f"{name}={_logfmt(value)}" for name, value in fields(record).items())


def _logfmt(value: Any) -> str:
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if _PLAIN.fullmatch(text) and text.isprintable() else _json(text)


def _json(value: Any) -> str:
    """Readable, and one line for every reader of lines."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
