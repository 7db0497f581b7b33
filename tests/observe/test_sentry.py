"""Failures of jobs in Sentry, by its SDK with a transport that keeps what would be sent."""

from collections.abc import Iterator
from typing import Any

import pytest
import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from windlass import App, Fixed, Snooze
from windlass.contrib.sentry import report_to_sentry
from windlass.testing import arun_all


class Kept(Transport):
    """Keeps events."""

    events: list[dict[str, Any]]

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        super().__init__(options)
        self.events = []

    def capture_envelope(self, envelope: Envelope) -> None:
        if (event := envelope.get_event()) is not None:
            self.events.append(dict(event))


@pytest.fixture
def sent() -> Iterator[list[dict[str, Any]]]:
    transport = Kept()
    sentry_sdk.init(dsn="https://key@sentry.example.org/1", transport=transport, default_integrations=False)
    yield transport.events
    sentry_sdk.get_client().close()
    sentry_sdk.get_global_scope().set_client(None)


def shop(**options: Any) -> App:
    app = App.testing()
    report_to_sentry(app, **options)

    @app.task(type="mail.welcome", queue="mail", retry=Fixed(attempts=2, base=0))
    async def welcome(user: str) -> None:
        raise LookupError(f"no user {user}")

    @app.task(type="later")
    def later() -> None:
        raise Snooze(60)

    return app


async def test_every_failed_attempt_arrives_with_its_job(sent: list[dict[str, Any]]) -> None:
    app = shop()
    job = await app.aenqueue("mail.welcome", {"user": "ann"})
    await arun_all(app)
    assert [event["transaction"] for event in sent] == ["mail.welcome"] * 2
    first, second = (event["tags"] for event in sent)
    assert {name: first[f"windlass.{name}"] for name in ("job", "type", "queue", "attempt", "last_attempt")} == {
        "job": job.id,
        "type": "mail.welcome",
        "queue": "mail",
        "attempt": 1,
        "last_attempt": False,
    }
    assert (second["windlass.attempt"], second["windlass.last_attempt"]) == (2, True)
    error = sent[0]["exception"]["values"][-1]
    assert (error["type"], error["value"]) == ("LookupError", "no user ann")
    assert "payload" not in sent[0]["contexts"].get("windlass", {})


async def test_a_payload_is_sent_only_if_that_was_asked_for(sent: list[dict[str, Any]]) -> None:
    app = shop(payloads=True)
    await app.aenqueue("mail.welcome", {"user": "ann"})
    await arun_all(app)
    assert sent[0]["contexts"]["windlass"]["payload"] == {"user": "ann"}


async def test_only_the_last_failure_if_that_was_asked_for(sent: list[dict[str, Any]]) -> None:
    app = shop(last_only=True)
    await app.aenqueue("mail.welcome", {"user": "ann"})
    await arun_all(app)
    assert [event["tags"]["windlass.last_attempt"] for event in sent] == [True]


async def test_a_decision_of_the_handler_is_no_error(sent: list[dict[str, Any]]) -> None:
    app = shop()
    await app.aenqueue("later")
    await arun_all(app)
    assert sent == []
