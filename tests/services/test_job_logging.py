"""What handlers log carries their job, and is kept with it; what is outside of jobs is left alone."""

import asyncio
import logging
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.services.parts import claimed, one_work
from windlass import App
from windlass.core.jobs.outcome import Done
from windlass.worker.handlers.attempt import run_async, run_sync
from windlass.worker.handlers.job_logging import JobRecordFactory, add_job_to_records, keep_job_logs, show_app_logs
from windlass.worker.handlers.work import Work

logger = logging.getLogger("shop.mail")


@pytest.fixture
def app() -> App:
    """Never opened."""
    return App("sqlite:///never-opened.db")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """These are settings of the whole process."""
    factory, handlers, level = logging.getLogRecordFactory(), list(logging.root.handlers), logger.level
    before = logging.root.level
    logger.setLevel(logging.DEBUG)
    yield
    logging.setLogRecordFactory(factory)
    logging.root.handlers[:] = handlers
    logger.setLevel(level)
    logging.root.setLevel(before)


class Lines(logging.Handler):
    """As a user's format would show them."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.setFormatter(
            logging.Formatter(
                "%(windlass_job_id)s %(windlass_job_type)s %(windlass_queue)s %(windlass_attempt)d %(message)s"
            )
        )

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


async def work_that_logs(app: App, kind: str) -> Work:
    def say() -> None:
        logger.debug("quietly")
        logger.info("sent %d", 3)
        logging.getLogger("windlass.worker").warning("ours")
        try:
            raise ValueError("bounced")
        except ValueError:
            logger.exception("not sent")

    @app.task(type="async")
    async def handle_async() -> None:
        await asyncio.to_thread(say)

    @app.task(type="def")
    def handle_sync() -> None:
        say()

    work = one_work(app, claimed(type=kind, queue="mail"))
    outcome = await run_async(work) if kind == "async" else run_sync(work)
    assert outcome == Done("null")
    return work


@pytest.mark.parametrize("kind", ["async", "def"])
async def test_every_record_inside_a_handler_carries_its_job(app: App, kind: str) -> None:
    add_job_to_records()
    shown = Lines()
    logging.root.addHandler(shown)
    logger.info("before")
    work = await work_that_logs(app, kind)
    logger.info("after")
    assert (shown.lines[0], shown.lines[-1]) == ("- - - 0 before", "- - - 0 after")
    assert f"{work.claimed.id} {kind} mail 1 sent 3" in shown.lines


@pytest.mark.parametrize("kind", ["async", "def"])
async def test_what_is_logged_inside_a_handler_is_kept_with_its_job(app: App, kind: str) -> None:
    logging.root.handlers[:] = [logging.NullHandler()]
    keep_job_logs(logging.INFO)
    work = await work_that_logs(app, kind)
    logger.warning("nobody's")
    assert [line.text for line in work.lines] == [
        "INFO shop.mail: sent 3",
        "ERROR shop.mail: not sent (ValueError: bounced)",
    ]


async def test_the_level_decides_what_is_kept_and_none_keeps_nothing(app: App) -> None:
    logging.root.handlers[:] = [logging.NullHandler()]
    keep_job_logs(None)
    assert (await work_that_logs(app, "def")).lines == []
    keep_job_logs(logging.ERROR)
    work = await work_that_logs(App("sqlite:///never-opened.db"), "def")
    assert [line.text.partition(":")[0] for line in work.lines] == ["ERROR shop.mail"]


async def test_warnings_are_shown_where_no_logging_is_set_up(app: App, capsys: pytest.CaptureFixture[str]) -> None:
    logging.root.handlers[:] = []
    keep_job_logs(logging.INFO)
    work = await work_that_logs(app, "def")
    shown = capsys.readouterr().err
    assert "not sent" in shown
    assert "sent 3" not in shown
    assert len(work.lines) == 2


async def test_what_a_cell_prints_anyway_is_not_kept_twice(app: App, capsys: pytest.CaptureFixture[str]) -> None:
    logging.root.handlers[:] = []
    keep_job_logs(logging.INFO, printed=True)
    work = await work_that_logs(app, "def")
    assert "not sent" in capsys.readouterr().err
    assert [line.text for line in work.lines] == ["INFO shop.mail: sent 3"]


async def test_info_is_shown_and_kept_if_the_app_has_set_up_no_logging(
    app: App, capsys: pytest.CaptureFixture[str]
) -> None:
    logging.root.handlers[:] = []
    logger.setLevel(logging.NOTSET)
    add_job_to_records()
    show_app_logs()
    keep_job_logs(logging.INFO)
    work = await work_that_logs(app, "def")
    first, *rest = capsys.readouterr().err.splitlines()
    assert re.fullmatch(rf"20\S+Z INFO    \[{work.claimed.id}\] shop\.mail: sent 3", first)
    assert rest[-1] == "ValueError: bounced"
    assert [line.text for line in work.lines] == [
        "INFO shop.mail: sent 3",
        "ERROR shop.mail: not sent (ValueError: bounced)",
    ]


async def test_info_that_a_handler_process_prints_is_kept_as_printed(
    app: App, capsys: pytest.CaptureFixture[str]
) -> None:
    logging.root.handlers[:] = []
    logger.setLevel(logging.NOTSET)
    show_app_logs(printed=True)
    keep_job_logs(logging.INFO, printed=True)
    work = await work_that_logs(app, "def")
    shown = capsys.readouterr().err.splitlines()
    assert [line for line in shown if "shop.mail" in line] == ["INFO shop.mail: sent 3", "ERROR shop.mail: not sent"]
    assert work.lines == []


@pytest.mark.parametrize(
    ("handlers", "level"), [([logging.NullHandler()], logging.WARNING), ([], logging.ERROR), ([], logging.DEBUG)]
)
def test_logging_that_the_app_has_set_up_is_left_as_it_is(handlers: list[logging.Handler], level: int) -> None:
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)
    show_app_logs()
    assert (logging.root.handlers, logging.root.level) == (handlers, level)


async def test_what_cannot_be_shown_hurts_no_handler(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging, "raiseExceptions", False)
    logging.root.handlers[:] = [logging.NullHandler()]
    keep_job_logs(logging.INFO)

    @app.task(type="t")
    def handle() -> None:
        logger.info("%d", "no number")

    work = one_work(app, claimed(type="t"))
    assert run_sync(work) == Done("null")
    assert work.lines == []


def test_a_factory_that_was_there_goes_on_working_and_is_wrapped_once() -> None:
    class Own(logging.LogRecord):
        """A user's."""

    logging.setLogRecordFactory(Own)
    add_job_to_records()
    add_job_to_records()
    made = logging.makeLogRecord({"msg": "from elsewhere"})
    assert isinstance(made, Own)
    assert vars(made)["windlass_job_id"] == "-"
    present = logging.getLogRecordFactory()
    assert isinstance(present, JobRecordFactory)
    assert not isinstance(present._make, JobRecordFactory)


def test_importing_windlass_and_making_an_app_changes_no_logging() -> None:
    script = (
        "import logging; before = logging.getLogRecordFactory(); import windlass; windlass.App('sqlite:///no.db');"
        "print(logging.getLogRecordFactory() is before, logging.root.handlers)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "True []"
