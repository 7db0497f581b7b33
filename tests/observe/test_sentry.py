"""Failures of jobs in Sentry, by its SDK with a transport that keeps what would be sent.

In a process of its own: the SDK imports eventlet if it is there, and that warns at every later fork.
"""

import json
import subprocess
import sys
from typing import Any

import pytest

from tests.meta.tree import ROOT


def sent(*types: str, **options: Any) -> dict[str, Any]:
    """The id of the job that failed twice, and the events, also of jobs of these types."""
    words = [sys.executable, "-W", "ignore", "-m", "tests.observe.sentry_events", json.dumps(options), *types]
    ended = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def test_every_failed_attempt_arrives_with_its_job_and_without_its_payload() -> None:
    found = sent()
    events = found["events"]
    assert [event["transaction"] for event in events] == ["mail.welcome"] * 2
    first, second = (event["tags"] for event in events)
    assert {name: first[f"windlass.{name}"] for name in ("job", "type", "queue", "attempt", "last_attempt")} == {
        "job": found["job"],
        "type": "mail.welcome",
        "queue": "mail",
        "attempt": 1,
        "last_attempt": False,
    }
    assert (second["windlass.attempt"], second["windlass.last_attempt"]) == (2, True)
    error = events[0]["exception"]["values"][-1]
    assert (error["type"], error["value"]) == ("LookupError", "no user ann")
    assert "payload" not in events[0]["contexts"].get("windlass", {})


def test_payloads_and_only_the_last_failure_if_that_was_asked_for() -> None:
    (event,) = sent(payloads=True, last_only=True)["events"]
    assert event["tags"]["windlass.last_attempt"] is True
    assert event["contexts"]["windlass"]["payload"] == {"user": "ann"}


@pytest.mark.parametrize("type_", ["given.up", "not.retried", "asks.again"])
def test_a_job_that_dies_before_its_attempts_are_used_up_counts_as_the_last_failure(type_: str) -> None:
    events = [event for event in sent(type_, last_only=True)["events"] if event["transaction"] == type_]
    assert [event["tags"]["windlass.last_attempt"] for event in events] == [True]
