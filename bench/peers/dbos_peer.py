"""DBOS with its SQLite system database and a queue at its defaults (it looks for work once a second)."""

import json
import random
import sys
import threading
import time
from importlib.metadata import version
from pathlib import Path

from dbos import DBOS, DBOSClient, DBOSConfig

FOLDER = Path(sys.argv[2])
JOBS = int(sys.argv[3]) if len(sys.argv) > 3 else 0
DATABASE = f"sqlite:///{FOLDER}/dbos.sqlite"
QUEUE = "bench"


@DBOS.workflow()  # type: ignore[untyped-decorator]
def stamp(sent: int) -> None:
    """Write the time of enqueue and of the start to a file, on the clock that all processes share."""
    started = time.monotonic_ns()
    with (FOLDER / "stamps").open("a") as file:
        file.write(f"{sent} {started}\n")


def serve() -> None:
    """A process that executes the queue, until it is killed."""
    settings: DBOSConfig = {
        "name": "bench",
        "system_database_url": DATABASE,
        "application_version": "1",
        "run_admin_server": False,
    }
    DBOS(config=settings)
    DBOS.launch()
    DBOS.register_queue(QUEUE)
    threading.Event().wait()


def produce() -> None:
    """Enqueue with pauses, from another process."""
    client = DBOSClient(system_database_url=DATABASE)
    pauses = random.Random(1)
    for _ in range(JOBS):
        time.sleep(pauses.uniform(0.05, 0.15))
        client.enqueue(
            {"queue_name": QUEUE, "workflow_name": "stamp", "app_version": "1"},
            time.monotonic_ns(),
        )
    print(json.dumps({"version": version("dbos"), "jobs": JOBS, "seconds": 0.0}))


if __name__ == "__main__":
    {"serve": serve, "produce": produce}[sys.argv[1]]()
