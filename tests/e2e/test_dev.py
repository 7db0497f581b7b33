"""windlass dev as a developer uses it: save, see, break, repair, stop."""

import re
import signal
from pathlib import Path

import httpx
import pytest

from tests.e2e.stage import Stage
from tests.support.parts import extended
from tests.support.processes import Process, alive, children, until

APP = """
import pathlib, time
import windlass
from parts.words import GREETING

app = windlass.App()


@app.task(type="greet")
def greet() -> str:
    return GREETING


@app.task(type="hold"{how})
def hold() -> str:
    pathlib.Path("held").touch()
    while not pathlib.Path("let go").exists():
        time.sleep(0.01)
    return GREETING
"""


class Enqueuer:
    """A developer at work: an app in two files, and `windlass dev` beside it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.words = stage.folder / "parts" / "words.py"
        self.words.parent.mkdir()
        self.save("one")
        self.write_app()

    def write_app(self, how: str = "") -> None:
        (self.stage.folder / "hello.py").write_text(APP.format(how=how))

    def save(self, greeting: str) -> None:
        """Another constant in a module that the app imports; always of the same size."""
        self.words.write_text(f"GREETING = {greeting!r}\n")

    def dev(self, *options: str) -> Process:
        """`windlass dev`, not waited for."""
        words = ["-m", "windlass", "dev", "hello:app", "--lease", "2s", *options]
        return self.stage.processes.start("dev", *words)

    def ready(self, dev: Process, times: int = 1) -> None:
        until(lambda: dev.output.count(" is ready") >= times, f"the worker is ready for the {times}. time")

    def answer(self, type: str = "greet") -> object:
        """What a new job gives."""
        return self.stage.until_status(self.stage.enqueue_one(type), "completed").result


@pytest.fixture
def desk(stage: Stage) -> Enqueuer:
    return Enqueuer(stage)


def family(pid: int) -> list[int]:
    """A process and all that came of it."""
    return [pid, *(each for child in children(pid) for each in family(child))]


def check_gone(pids: list[int]) -> None:
    until(lambda: not any(alive(pid) for pid in pids), "nothing is left")


def test_the_next_job_runs_the_new_code(desk: Enqueuer) -> None:
    dev = desk.dev()
    desk.ready(dev)
    assert (
        "dev: hello:app, watching 3 Python files; Ctrl-C ends it" in dev.output
    )  # shop.py of the stage is there too
    assert desk.answer() == "one"
    for times, greeting in enumerate(("two", "six", "ten"), 2):
        desk.save(greeting)
        desk.ready(dev, times)
        assert desk.answer() == greeting
    assert dev.output.count("dev: parts/words.py changed: starting again") == 3
    assert "(greet) attempt 1 completed after" in dev.output
    assert not list(desk.stage.folder.rglob("*.pyc"))
    dev.send(signal.SIGTERM)
    assert dev.wait() == 0


@pytest.mark.parametrize(
    ("broken", "shown"),
    [
        ("GREETING = = 'one'\n", ['words.py", line 1', "SyntaxError: invalid syntax"]),
        ("raise SystemExit(3)\n", ["SystemExit: 3"]),
        *(
            pytest.param(*each, marks=pytest.mark.extended)
            for each in [
                ("raise LookupError('not yet')\n", ['words.py", line 1, in <module>', "LookupError: not yet"]),
                ("import nothing_of_that_name\n", ["No module named 'nothing_of_that_name'"]),
                ("import windlass\nwindlass.App().queue('a b')\n", ['words.py", line 2', "windlass.errors."]),
            ]
        ),
    ],
)
def test_an_app_that_cannot_be_imported_is_shown_and_runs_after_the_next_save(
    desk: Enqueuer, broken: str, shown: list[str]
) -> None:
    desk.words.write_text(broken)
    dev = desk.dev()
    until(lambda: "dev: waiting for the next save" in dev.output, "it waits")
    for words in ["importing hello:app failed:", *shown]:
        assert words in dev.output
    assert not dev.ended
    id_ = desk.stage.enqueue_one("greet")
    desk.save("two")
    assert desk.stage.until_status(id_, "completed").result == "two"
    desk.words.write_text(broken)
    until(lambda: dev.output.count("dev: waiting for the next save") == 2, "it waits again")
    assert dev.output.count("importing hello:app failed:") == 2
    dev.send(signal.SIGINT)
    assert dev.wait() == 0


def test_a_running_job_that_does_not_end_in_time_is_requeued_and_runs_the_new_code(desk: Enqueuer) -> None:
    dev = desk.dev("--drain", "100ms")
    id_ = desk.stage.enqueue_one("hold")
    until(lambda: (desk.stage.folder / "held").exists(), "the job runs")
    desk.save("two")
    desk.ready(dev, 2)
    (desk.stage.folder / "let go").touch()
    job = desk.stage.until_status(id_, "completed")
    assert (job.result, job.requeues, job.failures, job.crashes) == ("two", 1, 0, 0)
    dev.send(signal.SIGTERM)
    assert dev.wait() == 0


def test_a_running_job_that_ends_in_time_is_not_disturbed(desk: Enqueuer) -> None:
    dev = desk.dev("--drain", "60s")
    id_ = desk.stage.enqueue_one("hold")
    until(lambda: (desk.stage.folder / "held").exists(), "the job runs")
    desk.save("two")
    until(lambda: "running jobs get 60 s" in dev.output, "the drain begins")
    (desk.stage.folder / "let go").touch()
    job = desk.stage.until_status(id_, "completed")
    assert (job.result, job.attempt) == ("one", 1)
    desk.ready(dev, 2)
    assert desk.answer() == "two"
    dev.send(signal.SIGTERM)
    assert dev.wait() == 0


@pytest.mark.parametrize("how", [*extended([""]), ", run_in='process'"], ids=["thread", "process"])
@pytest.mark.parametrize("number", [signal.SIGINT, *extended([signal.SIGTERM])])
def test_a_signal_ends_it_and_all_that_it_started(desk: Enqueuer, how: str, number: signal.Signals) -> None:
    desk.write_app(how)
    dev = desk.dev("--processes", "2", "--drain", "100ms")
    id_ = desk.stage.enqueue_one("hold")
    until(lambda: (desk.stage.folder / "held").exists(), "the job runs")
    started = family(dev.pid)
    assert len(started) >= 3
    dev.send(number)
    assert dev.wait() == 0
    check_gone(started)
    assert desk.stage.job(id_).status == "pending"
    assert (desk.stage.app.workers.list(), desk.stage.inside.leases()) == ([], [])
    assert not desk.stage.inside.is_left_behind()


def test_nothing_is_left_when_it_is_killed_or_stopped_while_it_starts_again(desk: Enqueuer) -> None:
    dev = desk.dev()
    desk.ready(dev)
    started = family(dev.pid)
    dev.kill()
    check_gone(started)
    dev = desk.dev()
    desk.ready(dev)
    started = family(dev.pid)
    desk.save("two")
    until(lambda: "starting again" in dev.output, "it starts again")
    started += family(dev.pid)
    dev.send(signal.SIGTERM)
    assert dev.wait() == 0
    check_gone(started)


def test_a_path_that_no_save_can_repair_is_a_wrong_call(desk: Enqueuer) -> None:
    for wrong in ("hello", "hello.py:app"):
        dev = desk.stage.processes.start("dev", "-m", "windlass", "dev", wrong)
        assert dev.wait() == 2
        assert dev.output.startswith("error: ")
    dev = desk.dev("--processes", "0")
    assert dev.wait() == 2


def test_the_rest_server_starts_with_it_on_loopback_with_a_token_of_this_run(desk: Enqueuer) -> None:
    dev = desk.dev("--drain", "100ms")
    desk.ready(dev)
    found = re.search(r"REST at (http://127\.0\.0\.1:\d+)/, token of this run: (wl_\w+)", dev.output)
    assert found is not None
    link = re.search(r"dashboard, logged in \(the link works once\): (http\S+)", dev.output)
    assert link is not None
    assert found[2] not in link[1]
    headers = {"authorization": f"Bearer {found[2]}"}
    with httpx.Client(base_url=found[1], headers=headers) as client:
        until(lambda: _answers(client), "the server answers")
        answer = client.post("/api/v1/jobs", json={"type": "greet"})
        assert answer.status_code == 201
        assert desk.stage.until_status(answer.json()["id"], "completed").result == "one"
        assert client.get("/api/v1/jobs", headers={"authorization": "Bearer wl_other"}).status_code == 401
        _log_in_once(link[1])
        desk.save("two")
        desk.ready(dev, 2)
        until(lambda: _answers(client), "the server answers after a restart, with the same token")
        assert httpx.get(link[1]).status_code == 403, "also after a restart"
        assert client.get("/api/v1/jobs").status_code == 200
    started = family(dev.pid)
    assert not any(found[2] in Path(f"/proc/{pid}/cmdline").read_text() for pid in started)
    assert desk.stage.app.tokens.list() == []
    dev.send(signal.SIGTERM)
    assert dev.wait() == 0
    check_gone(started)


def _log_in_once(link: str) -> None:
    """The link begins a session and leaves its address; a second browser is refused."""
    with httpx.Client() as browser:
        assert browser.head(link).status_code == 204, "a preview of the link does not use it"
        answer = browser.get(link)
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        home = browser.get(answer.url.join("/"))
        assert "development" in home.text
    second = httpx.get(link)
    assert second.status_code == 403
    assert "this link has been used" in second.text
    assert "set-cookie" not in second.headers
    assert httpx.get(link[:-1] + "x").status_code == 403


def test_the_dashboard_is_opened_in_the_browser_logged_in(desk: Enqueuer) -> None:
    opened = desk.stage.folder / "opened"
    script = desk.stage.folder / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" > {opened}.part && mv {opened}.part {opened}\n')
    script.chmod(0o755)
    desk.stage.processes.environment["BROWSER"] = f"{script} %s"
    dev = desk.dev("--open")
    until(opened.exists, "the browser is called")
    answer = httpx.get(opened.read_text().strip(), follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    dev.send(signal.SIGTERM)
    assert dev.wait() == 0


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False
