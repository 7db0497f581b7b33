"""A program that reports failures to Sentry, and prints what would be sent; options of report_to_sentry as JSON."""

import asyncio
import json
import sys
from typing import Any

import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from windlass import App, Dead, Fixed, Retry, Snooze
from windlass.contrib.sentry import report_to_sentry
from windlass.testing import arun_all

EVENTS: list[dict[str, Any]] = []


class Kept(Transport):
    """Keeps events."""

    def capture_envelope(self, envelope: Envelope) -> None:
        if (event := envelope.get_event()) is not None:
            EVENTS.append(dict(event))


async def main() -> None:
    """One job that fails twice, one that is put off, and three that end at once."""
    app = App.testing()
    report_to_sentry(app, **json.loads(sys.argv[1]))

    @app.task(type="mail.welcome", queue="mail", retry=Fixed(attempts=2, base=0))
    async def welcome(user: str) -> None:
        raise LookupError(f"no user {user}")

    @app.task(type="later")
    def later() -> None:
        raise Snooze(60)

    @app.task(type="given.up")
    async def given_up() -> None:
        raise Dead("no such account")

    @app.task(type="not.retried", dead_on=(LookupError,))
    def not_retried() -> None:
        raise LookupError("no such page")

    @app.task(type="asks.again", retry=Fixed(attempts=1, base=0))
    def asks_again() -> None:
        raise Retry(after=0)

    job = await app.aenqueue("mail.welcome", {"user": "ann"})
    await app.aenqueue("later")
    for type_ in sys.argv[2:]:
        await app.aenqueue(type_)
    await arun_all(app)
    print(json.dumps({"job": job.id, "events": EVENTS}, default=str))


if __name__ == "__main__":
    sentry_sdk.init(dsn="https://key@sentry.example.org/1", transport=Kept(), default_integrations=False)
    asyncio.run(main())
