"""gevent: producers whose threads are greenlets wait without stopping each other. What cannot work is refused."""

import re
import shutil
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store
from tests.support.processes import Process, until

HERE = Path(__file__).parent

EVENTLET = """
import eventlet

{before}
import shop
import windlass
{after}
try:
    {call}
except windlass.ConfigError as error:
    print("refused:", error)
"""

NO_UVLOOP = """
import sys

sys.modules["uvloop"] = None
from gevent import monkey

monkey.patch_all()
import shop
import windlass

try:
    shop.quick.enqueue()
except windlass.ConfigError as error:
    print("refused:", error)
"""


@pytest.fixture
def patched(stage: Stage) -> Stage:
    """A stage with the programs of these tests."""
    for name in ("greenlets.py", "greenlets_closed.py", "web.py"):
        shutil.copy(HERE / name, stage.folder)
    return stage


@on_every_store
@pytest.mark.parametrize("when", ["before", "after"])
def test_greenlets_use_an_app_at_once_whenever_gevent_has_patched(patched: Stage, when: str) -> None:
    patched.worker()
    blobs = {"WINDLASS_BLOBS": str(patched.folder / "blobs")}
    program = patched.processes.start("greenlets", "greenlets.py", when, environment=blobs)
    assert program.wait() == 0, program.output
    patched.close_down()


@on_every_store
def test_no_greenlet_waits_for_ever_for_an_event_loop_that_has_ended(patched: Stage) -> None:
    program = patched.processes.start("greenlets", "-W", "error::RuntimeWarning", "greenlets_closed.py")
    assert program.wait() == 0, program.output
    assert "all of them ended" in program.output
    assert "never awaited" not in program.output


@on_every_store
def test_requests_of_one_gunicorn_process_wait_for_results_at_once(patched: Stage) -> None:
    patched.worker()
    _serve_and_stop(patched)
    patched.close_down()


def test_gunicorn_may_load_the_app_before_it_forks_and_patches(patched: Stage) -> None:
    patched.worker()
    _serve_and_stop(patched, "--preload")
    patched.close_down()


def _serve_and_stop(stage: Stage, *options: str) -> None:
    """Requests that wait, meanwhile others that are answered, and then one that ends the wait."""
    server, url = _gunicorn(stage, *options)

    def get(path: str) -> str:
        return httpx.get(url + path, timeout=30).raise_for_status().text

    with ThreadPoolExecutor(10) as visitors:
        waiting = [visitors.submit(get, "/block?gate") for _ in range(3)]
        until(lambda: len(stage.all_jobs(type="block")) == 3, "three requests wait")
        added = visitors.map(get, [f"/add?{number}" for number in range(12)])
        assert list(added) == [str(number + 1) for number in range(12)]
        assert not any(each.done() for each in waiting)
        get("/open?gate")
        assert [each.result() for each in waiting] == ["opened"] * 3
    server.send(signal.SIGTERM)
    assert server.wait() == 0


def _gunicorn(stage: Stage, *options: str) -> tuple[Process, str]:
    """A server with one process for all requests, and its address."""
    options = ("-k", "gevent", "-w", "1", "-b", "127.0.0.1:0", "--no-control-socket", *options)
    server = stage.processes.start("gunicorn", "-m", "gunicorn", *options, "web:application")
    (listening,) = until(lambda: re.findall(r"Listening at: (\S+)", server.output), "gunicorn listens")
    return server, listening


@pytest.mark.parametrize(("order", "call"), [("before", "shop.quick.enqueue()"), ("after", "shop.app.jobs.list()")])
def test_eventlet_is_refused_at_the_first_call(stage: Stage, order: str, call: str) -> None:
    patch = {"before": "", "after": "", order: "eventlet.monkey_patch()"}
    (stage.folder / "green.py").write_text(EVENTLET.format(call=call, **patch))
    program = stage.processes.start("eventlet", "-W", "ignore", "green.py")
    assert program.wait() == 0, program.output
    assert "refused: eventlet has patched this process" in program.output
    assert "never awaited" not in program.output


def test_gevent_without_uvloop_is_refused_at_the_first_call(stage: Stage) -> None:
    (stage.folder / "bare.py").write_text(NO_UVLOOP)
    program = stage.processes.start("gevent", "bare.py")
    assert program.wait() == 0, program.output
    assert "refused: under gevent Windlass needs uvloop" in program.output
    assert "never awaited" not in program.output


@pytest.mark.parametrize("patch", ["gevent.monkey.patch_all()", "eventlet.monkey_patch()"])
def test_a_worker_whose_app_patches_threads_is_refused(stage: Stage, patch: str) -> None:
    module, library = patch.rpartition(".")[0], patch.partition(".")[0]
    (stage.folder / "patching.py").write_text(f"import {module}\nimport shop\n{patch}\napp = shop.app\n")
    worker = stage.start_worker(app="patching:app")
    assert worker.wait() == 2
    assert f"error: {library} has patched" in worker.output


def test_a_worker_in_a_process_that_gevent_has_patched_is_refused(stage: Stage) -> None:
    started = ("-m", "gevent.monkey", "--module", "windlass")
    for arguments in (("worker", "shop:app"), ("coordinator",)):
        process = stage.processes.start("patched", *started, *arguments)
        assert process.wait() == 2
        assert "error: gevent has patched the threads of this process" in process.output


def test_commands_go_on_with_an_app_that_gevent_has_patched(stage: Stage) -> None:
    (stage.folder / "patching.py").write_text(
        "import gevent.monkey\ngevent.monkey.patch_all()\nfrom shop import app\n"
    )
    assert stage.command("enqueue", "--app", "patching:app", "quick")
    assert "quick" in stage.command("jobs", "list", "--app", "patching:app")
