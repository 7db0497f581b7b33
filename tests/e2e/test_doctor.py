"""windlass doctor beside real workers: what it says of the living, the strangers and the dead."""

import json
import os
import signal
from typing import Any

from tests.e2e.stage import Stage


def doctor(stage: Stage, code: int) -> dict[str, list[str]]:
    """What it finds to be a problem, by check."""
    ran = stage.processes.start("doctor", "-m", "windlass", "doctor", "--json", "--store", stage.url)
    assert ran.wait() == code, ran.output
    found: dict[str, Any] = json.loads(ran.output)
    problems: dict[str, list[str]] = {}
    for each in found["findings"]:
        if each["level"] == "problem":
            problems.setdefault(each["check"], []).append(each["says"])
    assert found["healthy"] is not bool(problems)
    return problems


def test_jobs_that_no_live_worker_can_run_are_reported_until_one_can(stage: Stage) -> None:
    stage.worker()
    assert doctor(stage, 0) == {}
    stage.enqueue("stranger", 3)
    stage.enqueue("quick", 2, {"queue": "attic"})
    stage.until_counts("blocked", 3)
    assert doctor(stage, 1) == {
        "types": ["3 jobs of type 'stranger' wait, and no live worker knows that type"],
        "queues": ["2 jobs wait in queue 'attic', and no live worker serves that queue"],
    }
    stage.app.jobs.cancel_all(type="stranger")
    stage.worker("--queues", "attic")
    stage.until_counts("completed", 2)
    assert doctor(stage, 0) == {}
    stage.close_down()


def test_a_worker_that_was_killed_with_its_runner_leaves_late_leases(stage: Stage) -> None:
    worker = stage.worker(lease="10m")
    running = stage.enqueue_one("block", gate="gate")
    stage.until_started([running])
    assert doctor(stage, 0) == {}
    for pid in worker.tree():
        os.kill(pid, signal.SIGKILL)
    worker.wait()
    assert doctor(stage, 1) == {
        "leases": ["1 runner ended without a word, holding 1 job, and there is no coordinator to rescue them"]
    }
    assert stage.job(running).status == "running", "a doctor does not rescue"
    stage.open("gate")
    stage.worker()
    stage.until_finished()
    assert doctor(stage, 0) == {}
    stage.check(again=[running])
    stage.close_down()
