"""`windlass check-worker` on the workers of examples/workers, on our own, and on workers that break the rules."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.rust import rust_worker
from windlass.testing.workers.check import check_worker, rule_names
from windlass.testing.workers.stage import LEASE

EXAMPLES = Path(__file__).parents[2] / "examples" / "workers"
SLOW = 8.0
"""The lease for the worker in shell, which starts several processes per call: a busy machine may take seconds."""
QUICK = (
    "repeats_a_claim_without_answer",
    "repeats_a_settlement_without_answer",
    "finishes_when_it_is_told_to_stop",
)
Command = Callable[[pytest.MonkeyPatch], list[str]]


def javascript(patch: pytest.MonkeyPatch) -> list[str]:
    if shutil.which("node") is None:
        pytest.skip("no Node here")
    return ["node", str(EXAMPLES / "check.mjs")]


def shell(patch: pytest.MonkeyPatch) -> list[str]:
    if shutil.which("jq") is None or shutil.which("curl") is None:
        pytest.skip("no curl or no jq here")
    patch.setenv("BASH_ENV", str(EXAMPLES / "check.sh"))
    patch.setenv("TYPES", "check.echo,check.fail,check.slow")
    return [str(EXAMPLES / "worker.sh")]


def rust(patch: pytest.MonkeyPatch) -> list[str]:
    return [rust_worker()]


def python(patch: pytest.MonkeyPatch) -> list[str]:
    patch.setenv("PYTHONPATH", str(EXAMPLES))
    return [sys.executable, "-m", "windlass", "worker", "check:app", "--queues", "check"]


@pytest.mark.parametrize("command", [javascript, shell, rust])
def test_a_worker_follows_the_rules_that_keep_jobs(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = check_worker(command(monkeypatch), QUICK, lease=SLOW)
    assert {each.rule: each.problem for each in verdicts} == dict.fromkeys(QUICK)


@pytest.mark.extended
@pytest.mark.parametrize("command", [javascript, shell, rust, python])
def test_a_worker_follows_every_rule(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = check_worker(command(monkeypatch), lease=SLOW if command is shell else LEASE)
    assert {each.rule: each.problem for each in verdicts} == dict.fromkeys(rule_names())
    skipped = {each.rule for each in verdicts if each.skipped}
    assert skipped == ({"reports_progress", "snoozes"} if command is shell else set())


CARELESS = """
import json, os, signal, sys, threading, time, urllib.request, uuid

fault = sys.argv[1]
worker, number, stopping = uuid.uuid4().hex, 0, []
signal.signal(signal.SIGTERM, lambda *_: stopping.append(1))


def post(path, **body):
    headers = {"authorization": "Bearer " + os.environ["WINDLASS_TOKEN"], "content-type": "application/json"}
    url = os.environ["WINDLASS_SERVER"] + "/api/v1" + path
    request = urllib.request.Request(url, json.dumps({"worker": worker, **body}).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read()
        return json.loads(text) if text else None


def beat():
    while fault != "no beat":
        time.sleep(0.3)
        try:
            post("/claims/beat")
        except OSError:
            pass


def run(job):
    if job["type"] == "check.slow":
        time.sleep(job["payload"]["seconds"])
    return {"id": job["id"], "attempt": job["attempt"], "outcome": "completed", "result": job["payload"].get("value")}


answered = True
threading.Thread(target=beat, daemon=True).start()
while not stopping:
    number += answered or fault == "new number"
    types, wait = ["check.echo", "check.fail", "check.slow"], 0 if fault == "no wait" else 2
    try:
        jobs = post("/claims", claim=number, queues=["check"], types=types, wait=wait)["jobs"]
        answered = True
    except OSError:
        answered = False
        continue
    for job in jobs:
        said = run(job)
        while True:
            try:
                post("/claims/settle", settlements=[said])
                break
            except OSError:
                if fault == "settles once":
                    break
if fault != "no end":
    post("/claims/end")
"""


@pytest.mark.parametrize(
    ("fault", "rule", "said"),
    [
        ("new number", "repeats_a_claim_without_answer", "does not end"),
        ("no end", "finishes_when_it_is_told_to_stop", "did not call /claims/end"),
        pytest.param(
            "settles once", "repeats_what_the_server_did_not_get", "does not end", marks=pytest.mark.extended
        ),
        pytest.param("no beat", "beats_while_jobs_run", "does not end", marks=pytest.mark.extended),
        pytest.param("no wait", "waits_for_jobs", "claims in 3 s without a job", marks=pytest.mark.extended),
    ],
)
def test_a_worker_that_breaks_a_rule_is_found_out(
    fault: str, rule: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.testing.workers.stage.PATIENCE", 10.0)
    script = tmp_path / "careless.py"
    script.write_text(CARELESS)
    (verdict,) = check_worker([sys.executable, str(script), fault], [rule])
    assert not verdict.passed
    assert said in (verdict.problem or "")


def test_the_command_says_what_it_found_and_ends_with_1_if_a_rule_is_broken(tmp_path: Path) -> None:
    script = tmp_path / "careless.py"
    script.write_text(CARELESS)
    words = ["--rule", "settles_failures", "--rule", "numbers_claims"]
    command = [sys.executable, "-m", "windlass", "check-worker", *words, "--", sys.executable, str(script), "none"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ})
    assert ran.returncode == 1, ran.stderr
    assert "FAILED  settles_failures: Settles an attempt that failed" in ran.stdout
    assert "passed  numbers_claims" in ran.stdout


def test_a_rule_that_there_is_not_is_a_wrong_call() -> None:
    command = [sys.executable, "-m", "windlass", "check-worker", "--rule", "sings", "--", "true"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, "completes_jobs" in ran.stderr.replace("\n", "")) == (2, True)


def test_a_worker_that_does_not_start_breaks_every_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windlass.testing.workers.stage.PATIENCE", 3.0)
    (verdict,) = check_worker(["true"], ["completes_jobs"])
    assert "makes no claim" in (verdict.problem or "")


def test_a_command_that_cannot_be_executed_breaks_every_rule(tmp_path: Path) -> None:
    (tmp_path / "worker").touch(0o600)
    verdicts = [*check_worker([str(tmp_path / "worker")], QUICK), *check_worker([str(tmp_path / "none")], QUICK)]
    assert all("it cannot be started" in (each.problem or "") for each in verdicts)
