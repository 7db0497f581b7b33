"""Traces of jobs by OpenTelemetry: `pip install 'windlass[otel]'`.

    app = App()
    trace_jobs(app)

Spans follow the messaging conventions: `send` where a job is enqueued, `process` round every attempt. The context
travels in the job's `meta`, so also through a REST server and along a chain.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from windlass.client.app import App
from windlass.client.tasks.context import Context
from windlass.core.control import Cancel, Retry, Snooze
from windlass.core.jobs.job import NewJob
from windlass.observe.tracing import Carrier, carrier_of, carrying, destinations, trace_ids
from windlass.version import __version__

__all__ = ["trace_jobs"]

SYSTEM = "windlass"
DECISIONS = (Cancel, Retry, Snooze)
"""Raised by a handler to decide the outcome: no errors."""


def trace_jobs(app: App, *, parent: bool = False, tracer_provider: TracerProvider | None = None) -> None:
    """Make a span for every enqueue and every attempt of this app.

    An attempt begins a trace of its own with a link to the enqueue; with `parent`, it continues the enqueue's trace.
    Without `tracer_provider` the global one is used.
    """
    tracer = trace.get_tracer("windlass", __version__, tracer_provider)
    app._tracing = lambda jobs: _sending(tracer, jobs)

    def trace_attempt(ctx: Context) -> Generator[None, Any, None]:
        yield from _processing(tracer, ctx, parent=parent)

    app.middleware(trace_attempt)


@contextmanager
def _sending(tracer: trace.Tracer, jobs: Sequence[NewJob]) -> Iterator[None]:
    """A `send` span; its context goes with the jobs."""
    queues = destinations(jobs)
    attributes: dict[str, Any] = {**_operation("send", "send"), "messaging.destination.name": ",".join(queues[:10])}
    if len(jobs) == 1:
        attributes |= {"messaging.message.id": jobs[0].id, "messaging.windlass.type": jobs[0].type}
    else:
        attributes["messaging.batch.message_count"] = len(jobs)
    name = f"send {jobs[0].type}" if len(jobs) == 1 else "send"
    kind = SpanKind.PRODUCER if len(jobs) == 1 else SpanKind.CLIENT
    with tracer.start_as_current_span(name, kind=kind, attributes=attributes):
        carrier: Carrier = {}
        propagate.inject(carrier)
        if "traceparent" not in carrier:
            _W3C.inject(carrier)
        with carrying({key: carrier[key] for key in ("traceparent", "tracestate") if key in carrier}):
            yield


def _processing(tracer: trace.Tracer, ctx: Context, *, parent: bool) -> Generator[None, Any, None]:
    """A `process` span round an attempt, linked to the enqueue or its child."""
    job = ctx._link.claimed
    origin = _W3C.extract(carrier_of(job.meta))
    made_by = trace.get_current_span(origin).get_span_context()
    links = [Link(made_by)] if made_by.is_valid and not parent else []
    attributes: dict[str, Any] = {
        **_operation("process", "process"),
        "messaging.destination.name": job.queue,
        "messaging.message.id": job.id,
        "messaging.windlass.type": job.type,
        "messaging.windlass.attempt": job.attempt,
    }
    attributes |= {
        name: value
        for name, value in (
            ("messaging.message.conversation_id", job.flow),
            ("messaging.windlass.schedule", job.schedule),
        )
        if value is not None
    }
    context = origin if parent and made_by.is_valid else trace.set_span_in_context(trace.INVALID_SPAN)
    with tracer.start_as_current_span(
        f"process {job.type}",
        context,
        SpanKind.CONSUMER,
        attributes,
        links,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        own = span.get_span_context()
        ids = trace.format_trace_id(own.trace_id), trace.format_span_id(own.span_id)
        token = trace_ids.set(ids)
        ctx._link.trace = ids[0]
        try:
            yield
        except DECISIONS:
            raise
        except BaseException as error:
            span.record_exception(error)
            span.set_attribute("error.type", type(error).__qualname__)
            span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
            raise
        finally:
            trace_ids.reset(token)


def _operation(name: str, kind: str) -> dict[str, Any]:
    return {"messaging.system": SYSTEM, "messaging.operation.name": name, "messaging.operation.type": kind}


_W3C = TraceContextTextMapPropagator()
