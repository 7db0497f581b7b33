"""Log lines in three formats with one schema, and failures that repeat as a count."""

import asyncio
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from windlass.core.events import AttemptEnded, DrainStarted, Event, RunnerStarted
from windlass.core.log_events import FailuresRepeated, JobsClaimed, OperatorActed
from windlass.core.status import Status
from windlass.errors import ConfigError
from windlass.observe import log_sampling
from windlass.observe.log_lines import JsonLines, Lines, LogfmtLines, fields
from windlass.observe.log_sampling import MAX_ALIKE, FailureSampling
from windlass.observe.logs import formatter, log_event, logger


def failure(number: int = 0, **more: Any) -> AttemptEnded:
    about: dict[str, Any] = {
        "job": f"id-{number}",
        "type": "mail.welcome",
        "queue": "mail",
        "attempt": 2,
        "status": Status.FAILED,
        "outcome": "failed",
        "worker": "w-1",
        "seconds": 0.25,
        "error": "ValueError: no such user",
        "wait": 60.0,
    }
    return AttemptEnded(**{**about, **more})


class Kept(logging.Handler):
    """Keeps records."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def kept() -> Iterator[Kept]:
    handler, level = Kept(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield handler
    logger.removeHandler(handler)
    logger.setLevel(level)


def test_an_attempt_has_the_fields_of_the_schema(kept: Kept) -> None:
    log_event(failure())
    found = json.loads(JsonLines().format(kept.records[0]))
    assert found.pop("at").endswith("Z")
    assert found == {
        "level": "warning",
        "logger": "windlass",
        "event": "attempt_ended",
        "message": "job id-0 (mail.welcome) attempt 2 failed after 0.250 s, next try in 60.0 s: "
        "ValueError: no such user",
        "job": "id-0",
        "type": "mail.welcome",
        "queue": "mail",
        "attempt": 2,
        "status": "failed",
        "outcome": "failed",
        "worker": "w-1",
        "duration": 0.25,
        "error": "ValueError: no such user",
        "wait": 60.0,
    }


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (RunnerStarted(runner="w-1", pid=7), {"event": "runner_started", "worker": "w-1", "pid": 7}),
        (DrainStarted(worker="w", seconds=30.0), {"event": "drain_started", "duration": 30.0}),
        (JobsClaimed(worker="w-1", jobs=3, queues=("a", "b")), {"event": "jobs_claimed", "queues": ["a", "b"]}),
        (
            OperatorActed(actor="ann", source="cli", action="queue.pause", target="mail"),
            {"event": "operator_acted", "actor": "ann", "action": "queue.pause", "target": "mail"},
        ),
    ],
)
def test_every_event_has_its_name_and_the_common_names_of_its_fields(
    kept: Kept, event: Event, expected: dict[str, Any]
) -> None:
    log_event(event)
    found = json.loads(JsonLines().format(kept.records[0]))
    assert {name: found[name] for name in expected} == expected
    assert not {"seconds", "runner"} & found.keys()


def handler_record() -> logging.LogRecord:
    try:
        raise LookupError("no\nuser")
    except LookupError:
        said = "hello\n\x1b[31m\u2028\x85"
        record = logging.LogRecord("shop", logging.ERROR, __file__, 1, 'said "%s"', (said,), sys.exc_info())
    record.windlass_job_id, record.windlass_job_type, record.windlass_queue = "id-1", "t", "q"
    record.windlass_attempt = 3
    return record


def test_what_a_handler_logs_has_the_fields_of_its_job_and_the_error() -> None:
    found = fields(handler_record())
    assert {name: found[name] for name in ("job", "type", "queue", "attempt", "logger", "event", "error")} == {
        "job": "id-1",
        "type": "t",
        "queue": "q",
        "attempt": 3,
        "logger": "shop",
        "event": "log",
        "error": "LookupError: no\nuser",
    }
    assert "raise LookupError" in found["traceback"]


def test_outside_of_a_job_there_are_no_fields_of_one() -> None:
    record = logging.LogRecord("shop", logging.INFO, __file__, 1, "hello", (), None)
    record.windlass_job_id = "-"
    assert fields(record).keys() == {"at", "level", "logger", "event", "message"}


@pytest.mark.parametrize("lines", [JsonLines(), LogfmtLines(), Lines()])
def test_a_record_is_one_line_whatever_it_contains(lines: logging.Formatter) -> None:
    text = lines.format(handler_record())
    assert len(text.splitlines()) == 1
    assert "\x1b" not in text


def test_logfmt_quotes_what_is_not_plain(kept: Kept) -> None:
    log_event(JobsClaimed(worker="w-1", jobs=3, queues=("a", "b")))
    log_event(failure(error='x="y"'))
    plain, quoted = (LogfmtLines().format(record) for record in kept.records)
    assert plain.endswith(" worker=w-1 jobs=3 queues=a,b")
    assert r'error="x=\"y\""' in quoted


def test_a_format_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match="--log-format: 'xml' is not one of text, json, logfmt"):
        formatter("xml")


async def test_failures_that_repeat_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_sampling, "WINDOW", 0.05)
    heard: list[Event] = []
    ended = asyncio.Event()

    def hear(event: Event) -> None:
        heard.append(event)
        if isinstance(event, FailuresRepeated):
            ended.set()

    emit = FailureSampling(hear)
    for number in range(MAX_ALIKE + 5):
        emit(failure(number, error=f"ValueError: user {number}"))
    emit(failure(error="KeyError: 'x'"))
    emit(failure(status=Status.COMPLETED, error=None))
    assert len(heard) == MAX_ALIKE + 2
    async with asyncio.timeout(10):
        await ended.wait()
    (repeated,) = [each for each in heard if isinstance(each, FailuresRepeated)]
    assert (repeated.type, repeated.error, repeated.times) == ("mail.welcome", "ValueError", 5)
    emit(failure(99))
    assert heard[-1] == failure(99)


async def test_what_was_only_counted_is_said_when_the_process_ends() -> None:
    heard: list[Event] = []
    emit = FailureSampling(heard.append)
    for number in range(MAX_ALIKE + 5):
        emit(failure(number))
    for _ in range(2):
        emit.flush()
        assert [each.times for each in heard if isinstance(each, FailuresRepeated)] == [5]


def test_without_an_event_loop_every_failure_is_written() -> None:
    heard: list[Event] = []
    emit = FailureSampling(heard.append)
    for number in range(3 * MAX_ALIKE):
        emit(failure(number))
    assert len(heard) == 3 * MAX_ALIKE


def test_repeated_failures_are_as_loud_as_one(kept: Kept) -> None:
    for status in (Status.FAILED, Status.DEAD):
        log_event(FailuresRepeated(type="t", queue="q", status=status, error="E", times=1234, duration=10.0))
    assert [(record.levelname, record.getMessage()) for record in kept.records] == [
        ("WARNING", "t failed 1,234 more times in 10 s: E"),
        ("ERROR", "t is dead 1,234 more times in 10 s: E"),
    ]
