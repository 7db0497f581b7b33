"""Spans of a runner's calls to the store, on request: `receive` for claims, `settle` for settlements."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

from opentelemetry import trace
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from windlass.contrib.otel.attributes import W3C, Attributes, JobAttributes
from windlass.core.jobs.job import Claimed
from windlass.core.jobs.outcome import Settlement
from windlass.observe.tracing import carrier_of
from windlass.store.contract import Store
from windlass.store.records import ClaimRequest, Settled

MAX_LINKS = 100
"""Jobs of a claim whose enqueues its span is linked to."""


def trace_store(store: Store, tracer: trace.Tracer, about: JobAttributes, verbs: frozenset[str]) -> Store:
    """The same store, with spans of these verbs."""
    return cast(Store, _TracedStore(store, _TracedJobs(store.jobs, tracer, about, verbs)))


class _TracedStore:
    """A store whose jobs are traced; everything else is the store's own."""

    def __init__(self, store: Store, jobs: "_TracedJobs") -> None:
        self._store = store
        self.jobs = jobs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class _TracedJobs:
    """Its claims and settlements; other verbs are the role's own."""

    def __init__(self, jobs: Any, tracer: trace.Tracer, about: JobAttributes, verbs: frozenset[str]) -> None:
        self._jobs = jobs
        self._tracer = tracer
        self._about = about
        self._verbs = verbs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jobs, name)

    async def claim(self, request: ClaimRequest) -> list[Claimed]:
        """A claim that finds nothing makes no span."""
        begin = time.time_ns()
        with self._failing("claim", "receive", begin, [quota.queue for quota in request.quotas]):
            claimed: list[Claimed] = await self._jobs.claim(request)
        if claimed and "claim" in self._verbs:
            attributes = self._about.of_batch("receive", "receive", {job.queue for job in claimed}, len(claimed))
            self._span("receive", begin, attributes, _links(claimed))
        return claimed

    async def settle(self, settlements: Sequence[Settlement]) -> list[Settled]:
        """Round every call."""
        begin, queues = time.time_ns(), {each.queue for each in settlements}
        with self._failing("settle", "settle", begin, queues):
            answers: list[Settled] = await self._jobs.settle(settlements)
        if "settle" in self._verbs:
            attributes = self._about.of_batch("settle", "settle", queues, len(settlements))
            attributes["messaging.windlass.stale"] = answers.count(Settled.STALE)
            self._span("settle", begin, attributes, [])
        return answers

    @contextmanager
    def _failing(self, verb: str, operation: str, begin: int, queues: Any) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if verb in self._verbs:
                attributes = self._about.of_batch(operation, operation, queues, 0)
                attributes["error.type"] = type(error).__qualname__
                self._span(operation, begin, attributes, [], error)
            raise

    def _span(
        self, name: str, begin: int, attributes: Attributes, links: list[Link], error: Exception | None = None
    ) -> None:
        span = self._tracer.start_span(
            name, trace.set_span_in_context(trace.INVALID_SPAN), SpanKind.CLIENT, attributes, links, begin
        )
        if error is not None:
            span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
        span.end()


def _links(claimed: Sequence[Claimed]) -> list[Link]:
    """Links to the enqueues of the jobs that carry one, each once."""
    found = (trace.get_current_span(W3C.extract(carrier_of(job.meta))).get_span_context() for job in claimed)
    known = {each.span_id: each for each in found if each.is_valid}
    return [Link(each) for each in list(known.values())[:MAX_LINKS]]
