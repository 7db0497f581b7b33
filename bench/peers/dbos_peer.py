"""DBOS on SQLite or PostgreSQL, with a queue at its defaults (it looks for work once a second)."""

import json
import os
import random
import sys
import threading
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dbos import DBOS, DBOSClient, DBOSConfig

FOLDER = Path(sys.argv[2])
JOBS = int(sys.argv[3]) if len(sys.argv) > 3 else 0
STORE = os.environ["BENCH_STORE"]
DATABASE = STORE if STORE.startswith("postgres") else f"sqlite:///{FOLDER}/dbos.sqlite"
QUEUE = "bench"
PAYLOAD = {"n": 1, "s": "x" * 64}
calls: list[float] = []


@DBOS.workflow()  # type: ignore[untyped-decorator]
def stamp(sent: int) -> None:
    """Write the time of enqueue and of the start to a file, on the clock that all processes share."""
    started = time.monotonic_ns()
    with (FOLDER / "stamps").open("a") as file:
        file.write(f"{sent} {started}\n")


@DBOS.workflow()  # type: ignore[untyped-decorator]
def member(n: int, s: str) -> None:
    """A member of a group; the times of the calls are all that is kept."""
    calls.append(time.perf_counter())


@DBOS.workflow()  # type: ignore[untyped-decorator]
def wait_for_all(members: list[str]) -> None:
    """A workflow that waits for the result of each member."""
    for id_ in members:
        DBOS.retrieve_workflow(id_).get_result()
    assert len(calls) == JOBS
    _say(time.perf_counter() - calls[0])
    sys.stdout.flush()
    os._exit(0)


def group() -> None:
    """One call for each member, and one for the workflow that waits for them."""
    _launch()  # it makes the tables
    began = time.perf_counter()
    client = DBOSClient(system_database_url=DATABASE)
    members = [_enqueue(client, "member", **PAYLOAD) for _ in range(JOBS)]
    _enqueue(client, "wait_for_all", members)
    _say(time.perf_counter() - began)


def _enqueue(client: DBOSClient, name: str, *args: Any, **kwargs: Any) -> str:
    handle = client.enqueue({"queue_name": QUEUE, "workflow_name": name, "app_version": "1"}, *args, **kwargs)
    return str(handle.get_workflow_id())


def serve() -> None:
    """A process that executes the queue, until it is killed."""
    _launch()
    DBOS.register_queue(QUEUE)
    threading.Event().wait()


def _launch() -> None:
    settings: DBOSConfig = {
        "name": "bench",
        "system_database_url": DATABASE,
        "application_version": "1",
        "run_admin_server": False,
    }
    DBOS(config=settings)
    DBOS.launch()


def produce() -> None:
    """Enqueue with pauses, from another process."""
    client = DBOSClient(system_database_url=DATABASE)
    pauses = random.Random(1)
    for _ in range(JOBS):
        time.sleep(pauses.uniform(0.05, 0.15))
        _enqueue(client, "stamp", time.monotonic_ns())
    _say(0.0)


def _say(seconds: float) -> None:
    print(json.dumps({"version": version("dbos"), "jobs": JOBS, "seconds": seconds}))


if __name__ == "__main__":
    verbs = {"serve": serve, "produce": produce}
    {**verbs, "group": group, "drain_group": serve}[sys.argv[1]]()
