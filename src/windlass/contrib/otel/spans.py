"""Spans of enqueues and attempts, and what connects them."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, TracerProvider

from windlass.client.app import App
from windlass.client.tasks.context import Context
from windlass.contrib.otel.attributes import W3C, JobAttributes
from windlass.contrib.otel.store_spans import trace_store
from windlass.core.control import Cancel, Retry, Snooze
from windlass.core.jobs.job import NewJob
from windlass.observe.tracing import Carrier, carrier_of, carrying, trace_ids
from windlass.version import __version__

DECISIONS = (Cancel, Retry, Snooze)
"""Raised by a handler to decide the outcome: no errors."""


def trace_jobs(
    app: App,
    *,
    parent: bool = False,
    receive: bool = False,
    settle: bool = False,
    tracer_provider: TracerProvider | None = None,
) -> None:
    """Make a span for every enqueue and every attempt of this app.

    An attempt begins a trace of its own with a link to the enqueue; with `parent`, it continues the enqueue's trace,
    unless a schedule made the job. `receive` and `settle` add spans of a runner's claims that brought jobs and of its
    settlements, each of many jobs at once. Without `tracer_provider` the global one is used.
    """
    tracer = trace.get_tracer("windlass", __version__, tracer_provider)
    about = JobAttributes(app)
    app._tracing = lambda jobs, operation: _sending(tracer, about, jobs, operation)
    verbs = frozenset(name for name, wanted in (("claim", receive), ("settle", settle)) if wanted)
    if verbs:
        app._trace_store = lambda store: trace_store(store, tracer, about, verbs)

    def trace_attempt(ctx: Context) -> Generator[None, Any, None]:
        yield from _processing(tracer, about, ctx, parent=parent)

    app.middleware(trace_attempt)


@contextmanager
def _sending(tracer: trace.Tracer, about: JobAttributes, jobs: Sequence[NewJob], operation: str) -> Iterator[None]:
    """A span round an enqueue, or round the creation of a schedule; its context goes with the jobs."""
    name = f"{operation} {jobs[0].type}" if len(jobs) == 1 else operation
    kind = SpanKind.PRODUCER if len(jobs) == 1 else SpanKind.CLIENT
    with tracer.start_as_current_span(name, kind=kind, attributes=about.of_new(jobs, operation)):
        carrier: Carrier = {}
        propagate.inject(carrier)
        if "traceparent" not in carrier:
            W3C.inject(carrier)
        with carrying({key: carrier[key] for key in ("traceparent", "tracestate") if key in carrier}):
            yield


def _processing(
    tracer: trace.Tracer, about: JobAttributes, ctx: Context, *, parent: bool
) -> Generator[None, Any, None]:
    """A `process` span round an attempt, linked to the enqueue or its child."""
    job = ctx._link.claimed
    origin = W3C.extract(carrier_of(job.meta))
    made_by = trace.get_current_span(origin).get_span_context()
    continues = parent and made_by.is_valid and job.schedule is None
    links = [Link(made_by)] if made_by.is_valid and not continues else []
    with tracer.start_as_current_span(
        f"process {job.type}",
        origin if continues else trace.set_span_in_context(trace.INVALID_SPAN),
        SpanKind.CONSUMER,
        about.of_attempt(job),
        links,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        own = span.get_span_context()
        ids = trace.format_trace_id(own.trace_id), trace.format_span_id(own.span_id)
        token = trace_ids.set(ids)
        ctx._link.trace = ids
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
