"""A program that reports failures to Sentry, and prints what would be sent; options of report_to_sentry as JSON."""

import asyncio
import json
import sys
from typing import Any

import sentry_sdk
from sentry_sdk.envelope import Envelope
from sentry_sdk.transport import Transport

from windlass import App, Fixed, Snooze
from windlass.contrib.sentry import report_to_sentry
from windlass.testing import arun_all

EVENTS: list[dict[str, Any]] = []


class Kept(Transport):
    """Keeps events."""

    def capture_envelope(self, envelope: Envelope) -> None:
        if (event := envelope.get_event()) is not None:
            EVENTS.append(dict(event))


async def main() -> None:
    """One job that fails twice, and one that is put off."""
    app = App.testing()
    report_to_sentry(app, **json.loads(sys.argv[1]))

    @app.task(type="mail.welcome", queue="mail", retry=Fixed(attempts=2, base=0))
    async def welcome(user: str) -> None:
        raise LookupError(f"no user {user}")

    @app.task(type="later")
    def later() -> None:
        raise Snooze(60)

    job = await app.aenqueue("mail.welcome", {"user": "ann"})
    await app.aenqueue("later")
    await arun_all(app)
    print(json.dumps({"job": job.id, "events": EVENTS}, default=str))


if __name__ == "__main__":
    sentry_sdk.init(dsn="https://key@sentry.example.org/1", transport=Kept(), default_integrations=False)
    asyncio.run(main())
