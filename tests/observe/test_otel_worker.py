"""OpenTelemetry in a worker: spans of claims and settlements on request, metrics through its SDK."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from windlass import App
from windlass.contrib.otel import measure_jobs, trace_jobs
from windlass.contrib.otel.attributes import JobAttributes
from windlass.contrib.otel.store_spans import trace_store
from windlass.errors import StoreUnavailable
from windlass.observe import process
from windlass.observe.figures import Figures
from windlass.observe.reading import RUN_SECONDS


class Traced:
    """An app on a file, and the spans that it made."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.app = App(f"sqlite:///{folder}/jobs.db")
        trace_jobs(self.app, tracer_provider=self.provider, **options)

        @self.app.task(type="mail.welcome", queue="mail")
        async def welcome(user: int) -> int:
            return user

        @self.app.task(type="broken", max_attempts=1)
        async def broken() -> None:
            raise LookupError("no user")

        self.welcome, self.broken = welcome, broken

    async def run(self) -> None:
        """Three jobs, by a real worker, to their ends."""
        handles = await self.app.aenqueue_many([self.welcome.job(user) for user in range(3)])
        async with self.app.worker():
            await asyncio.gather(*(handle.aresult(timeout=30) for handle in handles))
        await self.app.aclose()

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]


async def test_claims_and_settlements_have_spans_on_request(tmp_path: Path) -> None:
    traced = Traced(tmp_path, receive=True, settle=True)
    await traced.run()
    receives, settles, (send,) = traced.spans("receive"), traced.spans("settle"), traced.spans("send")
    for spans in (receives, settles):
        assert sum(int(str((span.attributes or {})["messaging.batch.message_count"])) for span in spans) == 3
        assert {span.kind for span in spans} == {SpanKind.CLIENT}
        assert {(span.attributes or {})["messaging.destination.name"] for span in spans} == {"mail"}
        assert all(span.start_time < span.end_time for span in spans if span.start_time and span.end_time)
    assert {(span.attributes or {})["messaging.operation.type"] for span in receives} == {"receive"}
    assert {(span.attributes or {})["messaging.operation.type"] for span in settles} == {"settle"}
    assert {link.context.span_id for span in receives for link in span.links} == {send.context.span_id}


async def test_without_the_request_there_are_none_and_no_store_is_wrapped(tmp_path: Path) -> None:
    traced = Traced(tmp_path)
    await traced.run()
    assert traced.app._trace_store is None
    assert {span.name for span in traced.exporter.get_finished_spans()} == {"send", "process mail.welcome"}


async def test_a_call_that_fails_is_an_error_on_its_span(tmp_path: Path) -> None:
    traced = Traced(tmp_path)

    class Away:
        """A store that does not answer."""

        @property
        def jobs(self) -> "Away":
            return self

        async def settle(self, _: object) -> None:
            raise StoreUnavailable("the store is away")

    away: Any = Away()
    tracer = traced.provider.get_tracer("t")
    store = trace_store(away, tracer, JobAttributes(traced.app), frozenset(["settle"]))
    with pytest.raises(StoreUnavailable):
        await store.jobs.settle([])
    (span,) = traced.spans("settle")
    assert span.status.status_code is StatusCode.ERROR
    assert (span.attributes or {})["error.type"] == "StoreUnavailable"


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("postgresql://u@db.example.org:6432/jobs", ("db.example.org", 6432)),
        ("redis://cache.example.org/0", ("cache.example.org", None)),
        ("sqlite:///jobs.db", (None, None)),
    ],
)
def test_the_server_of_the_store_is_named(store: str, expected: tuple[str | None, int | None]) -> None:
    found = JobAttributes(App(store)).of_batch("send", "send", ["q"], 2)
    assert (found.get("server.address"), found.get("server.port")) == expected


STORE_CALLS = ("windlass.store.calls", "windlass.store.call.time")


def metrics_of(reader: InMemoryMetricReader) -> dict[str, list[Any]]:
    """The points of each metric."""
    data = reader.get_metrics_data()
    return {
        metric.name: list(metric.data.data_points)
        for resource in (data.resource_metrics if data is not None else ())
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


async def test_metrics_of_a_worker_go_through_the_sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_wanted", False)
    monkeypatch.setattr(process, "_figures", {})
    traced, reader = Traced(tmp_path), InMemoryMetricReader()
    measure_jobs(traced.app, meter_provider=MeterProvider([reader]))
    await traced.run()
    found = metrics_of(reader)
    labels = {"queue": "mail", "type": "mail.welcome"}
    for name in ("enqueued", "started", "completed"):
        assert [(point.value, point.attributes) for point in found[f"windlass.jobs.{name}"]] == [(3, labels)]
    (run,), (wait,) = found["windlass.job.run"], found["windlass.job.wait"]
    assert run.count == wait.count == 3
    assert run.explicit_bounds == RUN_SECONDS
    assert (run.attributes, wait.attributes) == (labels, labels)
    assert 0 < wait.sum < 30
    calls, times = ({point.attributes["verb"]: point.value for point in found[name]} for name in STORE_CALLS)
    assert (calls["enqueue"], calls.keys()) == (1, times.keys())
    assert all(0 < seconds < 30 for seconds in times.values())


def test_a_process_whose_runner_adds_its_figures_shows_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_figures", {})
    figures = process.want_figures(Figures())
    figures.count("enqueued", "q", "t")
    reader = InMemoryMetricReader()
    measure_jobs(App.testing(), meter_provider=MeterProvider([reader]))
    assert [point.value for point in metrics_of(reader)["windlass.jobs.enqueued"]] == [1]
    figures.is_absorbed = True
    assert not metrics_of(reader).get("windlass.jobs.enqueued")


def test_jobs_that_a_rest_server_counts_are_shown_here_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_figures", "_through_server"):
        monkeypatch.setattr(process, name, {})
    reader = InMemoryMetricReader()
    measure_jobs(App.testing(), meter_provider=MeterProvider([reader]))
    behind = process.job_figures(through_server=True)
    assert behind is not None
    behind.count("completed", "q", "t")
    assert [point.value for point in metrics_of(reader)["windlass.jobs.completed"]] == [1]
    assert process.want_figures().read().jobs == {}
