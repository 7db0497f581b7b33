"""What handlers log with `logging`: stamped with their job, and kept with it. In worker processes only."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from windlass.client.tasks.context import Context, entered
from windlass.client.tasks.link import Link
from windlass.observe.log_lines import time_of
from windlass.observe.logs import formatter
from windlass.observe.tracing import trace_ids

OURS = "windlass"
JOB_ID = "windlass_job_id"
PRINTED = "%(levelname)s %(name)s: %(message)s"
"""The form of kept lines: in a handler process, standard output is kept with the job."""


class JobRecordFactory:
    """A factory of log records that adds the job: `windlass_job_id`, `_job_type`, `_queue`, `_attempt`.

    Its trace too: `windlass_trace_id`, `_span_id`. Outside of jobs these are "-" and 0, so that a format that names
    them works everywhere in a worker.
    """

    def __init__(self, make: Callable[..., logging.LogRecord]) -> None:
        self._make = make

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._make(*args, **kwargs)
        link = entered.get(None)
        record.windlass_job_id = "-" if link is None else link.claimed.id
        record.windlass_job_type = "-" if link is None else link.claimed.type
        record.windlass_queue = "-" if link is None else link.claimed.queue
        record.windlass_attempt = 0 if link is None else link.claimed.attempt
        record.windlass_trace_id, record.windlass_span_id = trace_ids.get() or ("-", "-")
        return record


def add_job_to_records() -> None:
    """From now on every log record of this process carries its job; an earlier factory still makes the records."""
    present = logging.getLogRecordFactory()
    if not isinstance(present, JobRecordFactory):
        logging.setLogRecordFactory(JobRecordFactory(present))


def show_app_logs(*, printed: bool = False, format: str = "text", log: TextIO | None = None) -> None:
    """Show what the app logs at INFO or above on standard error, unless it has configured logging.

    `printed` says that standard error is kept with the job; then `log` is the worker's own.
    """
    if logging.root.handlers or logging.root.level != logging.WARNING:
        return
    lines = AppLines() if format == "text" else formatter(format)
    _show_on(None, logging.Formatter(PRINTED) if printed else lines)
    if log is not None:
        _show_on(log, lines)
    logging.root.setLevel(logging.INFO)


def _show_on(stream: TextIO | None, lines: logging.Formatter) -> None:
    handler = logging.StreamHandler(stream)
    handler.setFormatter(lines)
    logging.root.addHandler(handler)


class AppLines(logging.Formatter):
    """Like the worker's own lines, with the job and the logger."""

    def __init__(self) -> None:
        super().__init__(f"%(asctime)s %(levelname)-7s [%({JOB_ID})s] %(name)s: %(message)s", defaults={JOB_ID: "-"})

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return time_of(record)


class JobLogHandler(logging.Handler):
    """Keeps what is logged inside a handler with its job, bounded as `ctx.log` is.

    `printed` says that standard output is kept with the job already, as in a handler process, so records that go
    there are not kept twice.
    """

    def __init__(self, level: int, *, printed: bool, app: object = None) -> None:
        super().__init__(level)
        self._printed = printed
        self._app = app

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record; called by `logging`, in any thread."""
        others = [each for each in logging.root.handlers if each is not self]
        last = logging.lastResort
        if not others and last is not None and record.levelno >= last.level:
            # Without this handler `logging` would use its last resort: print warnings as it would.
            last.handle(record)
            others = [last]
        link = entered.get(None)
        if link is None or record.name.partition(".")[0] == OURS or self._app not in (None, link.home):
            return
        if self._printed and any(_prints(each, record) for each in others):
            return
        try:
            _keep(link, record)
        except Exception:
            self.handleError(record)


def _prints(handler: logging.Handler, record: logging.LogRecord) -> bool:
    stream = getattr(handler, "stream", None)
    return record.levelno >= handler.level and stream is not None and stream in (sys.stdout, sys.stderr)


def _keep(link: Link, record: logging.LogRecord) -> None:
    error = record.exc_info[1] if record.exc_info else None
    why = "" if error is None else f" ({type(error).__name__}: {error})"
    Context(link, awaits=False).log(f"{record.levelname} {record.name}: {record.getMessage()}{why}")


def keep_job_logs(level: int | None, *, printed: bool = False) -> None:
    """Keep what handlers log at this level or above; the levels of loggers stay."""
    if level is not None:
        logging.root.addHandler(JobLogHandler(level, printed=printed))


@contextmanager
def keeping_job_logs(level: int | None, app: object) -> Iterator[None]:
    """`keep_job_logs` for the handlers of one app, inside the context."""
    if level is None:
        yield
        return
    handler = JobLogHandler(level, printed=False, app=app)
    logging.root.addHandler(handler)
    try:
        yield
    finally:
        logging.root.removeHandler(handler)
