"""A worker that stops claims no more at once, however long the store takes over its other duties."""

import json
import signal

import psycopg

from tests.e2e.stage import answer, free_port
from tests.postgres.works.plant import Plant
from tests.support.processes import let_pass, until

MESSAGE_SECONDS = 0.3
"""In which a runner gets the message that it stops; giving up the leadership takes a second here."""


def test_no_job_starts_after_the_stop_while_the_leadership_cannot_be_given_up(plant: Plant) -> None:
    port = free_port()
    worker = plant.worker("--concurrency", "1", "--health", f"127.0.0.1:{port}")
    (first,) = plant.enqueue("linger", 1, json.dumps({"until": "gate"}))
    until(lambda: plant.runs() == [first], "the job has started")
    until(lambda: plant.ask("SELECT holder FROM windlass.leadership WHERE holder IS NOT NULL"), "the worker leads")
    plant.enqueue("quick", 1)
    with psycopg.connect(plant.direct, application_name="a stranger") as stranger:
        stranger.execute("LOCK windlass.leadership IN ACCESS EXCLUSIVE MODE")
        worker.send(signal.SIGTERM)
        until(lambda: answer(port, "/readyz") == 503, "it is not ready any more")
        let_pass(MESSAGE_SECONDS)
        (plant.folder / "gate").touch()
        assert worker.wait() == 0
    assert plant.runs() == [first]
    assert plant.app.jobs.get(first).status == "completed"
