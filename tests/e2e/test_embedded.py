"""Embedded workers in web servers: each process of uvicorn or gunicorn has one, and stops it with its lifespan."""

import shutil
import signal
from pathlib import Path

import httpx
import pytest

from tests.e2e.stage import Stage, free_port
from tests.support.addresses import on_every_store
from tests.support.processes import Process, until

UVICORN = ("-m", "uvicorn", "lifespan:application", "--no-access-log", "--port")
GUNICORN = ("-m", "gunicorn", "-k", "uvicorn.workers.UvicornWorker", "--no-control-socket", "lifespan:application")


@pytest.fixture
def web(stage: Stage) -> Stage:
    shutil.copy(Path(__file__).with_name("lifespan.py"), stage.folder)
    return stage


def serve(stage: Stage, *arguments: str, workers: int = 1) -> Process:
    """A web server of which so many processes work."""
    server = stage.processes.start("web", *arguments)
    until(lambda: server.ended or len(stage.app.workers.list()) == workers, f"{workers} embedded workers are listed")
    return server


def get(port: int, path: str) -> str:
    return httpx.get(f"http://127.0.0.1:{port}/{path}", timeout=60).raise_for_status().text


def stop(stage: Stage, server: Process) -> None:
    """Ended as it should be, with nothing left in the store."""
    server.send(signal.SIGTERM)
    assert server.wait() in (0, -signal.SIGTERM)  # uvicorn raises the signal again when it has ended
    assert (stage.app.workers.list(), stage.inside.leases()) == ([], [])
    assert not stage.inside.is_left_behind()
    assert "Traceback" not in server.output


@on_every_store
def test_each_process_of_uvicorn_works_and_drains_at_the_end(web: Stage) -> None:
    port = free_port()
    server = serve(web, *UVICORN, str(port), "--workers", "2", workers=2)
    assert len({worker.pid for worker in web.app.workers.list()}) == 2
    assert [get(port, f"add?number={number}") for number in range(5)] == ["1", "2", "3", "4", "5"]
    assert int(get(port, "process")) not in {worker.pid for worker in web.app.workers.list()}
    running = web.enqueue_one("ablock", gate="gate")
    web.until_started([running])
    server.send(signal.SIGTERM)
    until(lambda: any(worker.draining for worker in web.app.workers.list()) or server.ended, "it drains")
    web.open("gate")
    stop(web, server)
    assert web.job(running).status == "completed"


def test_gunicorn_may_load_the_app_before_it_forks(web: Stage) -> None:
    port = free_port()
    server = serve(web, *GUNICORN, "--preload", "-w", "2", "-b", f"127.0.0.1:{port}", workers=2)
    assert get(port, "add?number=1") == "2"
    stop(web, server)


@pytest.mark.extended
def test_uvicorn_reloads_after_a_drain(web: Stage) -> None:
    port = free_port()
    server = serve(web, *UVICORN, str(port), "--reload")
    (before,) = web.app.workers.list()
    running = web.enqueue_one("ablock", gate="gate")
    web.until_started([running])
    (web.folder / "lifespan.py").touch()
    until(lambda: "Reloading" in server.output, "the change is seen")
    web.open("gate")
    until(lambda: [worker.pid for worker in web.app.workers.list()] not in ([], [before.pid]), "another one works")
    assert web.job(running).status == "completed"
    assert get(port, "add?number=1") == "2"
    stop(web, server)


@on_every_store
def test_jobs_of_a_killed_web_process_are_rescued(web: Stage) -> None:
    server = serve(web, *UVICORN, str(free_port()))
    job = web.enqueue_one("ablock", gate="gate")
    web.until_started([job])
    server.kill()
    web.worker()
    until(lambda: len(web.history.starts(job)) == 2, "it starts again", seconds=60)
    web.open("gate")
    web.until_finished()
    found = web.job(job)
    assert (found.status, found.attempt, found.failures) == ("completed", 2, 0)
