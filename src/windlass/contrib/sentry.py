"""Failed attempts in Sentry, each with its job: `pip install sentry-sdk`.

app = App()
report_to_sentry(app)
"""

from collections.abc import Generator
from typing import Any

import sentry_sdk

from windlass.client.app import App
from windlass.client.tasks.context import Context
from windlass.core.control import Cancel, Retry, Snooze
from windlass.core.jobs.outcome import dead_because
from windlass.observe.tracing import trace_ids

__all__ = ["report_to_sentry"]

DECISIONS = (Cancel, Retry, Snooze)
"""Raised by a handler to decide the outcome: no errors, unless the job is dead after them."""


def report_to_sentry(app: App, *, payloads: bool = False, last_only: bool = False) -> None:
    """Send every failed attempt of this app to Sentry, with job, type, queue and attempt; flush when a process ends.

    `payloads` adds the payload of the job, `last_only` sends only failures after which a job is dead. Set up the SDK
    yourself, in every process that runs handlers (`@app.on_start`). The middlewares registered later are inside.
    """

    def report_failure(ctx: Context) -> Generator[None, Any, None]:
        job = ctx._link.claimed
        last = job.failures + job.crashes + 1 >= job.max_attempts
        with sentry_sdk.isolation_scope() as scope:
            scope.set_transaction_name(job.type)
            tags = {"job": job.id, "type": job.type, "queue": job.queue, "attempt": job.attempt, "last_attempt": last}
            scope.set_tags({f"windlass.{name}": value for name, value in tags.items()})
            about: dict[str, Any] = {"tenant": job.tenant, "schedule": job.schedule, "flow": job.flow}
            if (ids := trace_ids.get()) is not None:
                about["trace"] = ids[0]
            if payloads:
                about["payload"] = ctx.job.payload
            scope.set_context("windlass", {name: value for name, value in about.items() if value is not None})
            try:
                yield
            except Exception as error:
                last = dead_because(job, error, ctx._link.dead_on) is not None
                scope.set_tag("windlass.last_attempt", last)
                if last or not (last_only or isinstance(error, DECISIONS)):
                    sentry_sdk.capture_exception(error)
                raise

    def flush_sentry() -> None:
        sentry_sdk.flush(timeout=2)

    app.middleware(report_failure)
    app.on_stop(flush_sentry)
