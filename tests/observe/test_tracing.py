"""Traces of jobs, by the SDK's exporter in memory: producer and consumer, batches, chains, errors, REST, logs."""

import asyncio
import logging
import os
import socket
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from tests.support.seed import new_job
from windlass import App, Snooze, chain
from windlass.contrib.otel import trace_jobs
from windlass.observe.log_lines import fields
from windlass.observe.tracing import carrier_of, carrying, incoming, with_trace
from windlass.remote import RemoteApp
from windlass.server import asgi
from windlass.testing import arun_all
from windlass.worker.handlers.job_logging import JobRecordFactory

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Shop:
    """A traced app in memory, and the spans that it made."""

    def __init__(self, **options: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.app = App.testing()
        trace_jobs(self.app, tracer_provider=self.provider, **options)
        self.records: list[logging.LogRecord] = []
        make = JobRecordFactory(logging.LogRecord)

        @self.app.task(type="mail.welcome", queue="mail")
        async def welcome(user: int) -> int:
            self.records.append(make("shop", logging.INFO, "", 1, "hello", (), None))
            return user

        @self.app.task(type="broken", max_attempts=1)
        def broken() -> None:
            raise LookupError("no user")

        @self.app.task(type="later")
        def later() -> None:
            raise Snooze(60)

        self.welcome, self.broken, self.later = welcome, broken, later

    def spans(self, name: str) -> Sequence[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (found,) = self.spans(name)
        return found


async def test_an_attempt_is_linked_to_its_enqueue_in_a_trace_of_its_own() -> None:
    shop = Shop()
    job = await shop.welcome.aenqueue(1)
    await arun_all(shop.app)
    send, process = shop.one("send mail.welcome"), shop.one("process mail.welcome")
    assert (send.kind, process.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert process.context.trace_id != send.context.trace_id
    assert [link.context.span_id for link in process.links] == [send.context.span_id]
    assert dict(process.attributes or {}) == {
        "messaging.system": "windlass",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": "mail",
        "messaging.message.id": job.id,
        "messaging.client.id": f"{socket.gethostname()}-{os.getpid()}",
        "messaging.windlass.type": "mail.welcome",
        "messaging.windlass.attempt": 1,
    }


async def test_with_parent_an_attempt_continues_the_trace_of_its_enqueue() -> None:
    shop = Shop(parent=True)
    with shop.provider.get_tracer("web").start_as_current_span("GET /") as request:
        await shop.welcome.aenqueue(1)
    await arun_all(shop.app)
    send, process = shop.one("send mail.welcome"), shop.one("process mail.welcome")
    assert process.parent is not None
    assert process.parent.span_id == send.context.span_id
    assert process.context.trace_id == request.get_span_context().trace_id
    assert process.links == ()


async def test_many_jobs_are_one_span_and_every_attempt_is_linked_to_it() -> None:
    shop = Shop()
    await shop.app.aenqueue_many([shop.welcome.job(user) for user in range(3)])
    await arun_all(shop.app)
    send = shop.one("send")
    assert (send.attributes or {})["messaging.batch.message_count"] == 3
    linked = {link.context.span_id for span in shop.spans("process mail.welcome") for link in span.links}
    assert linked == {send.context.span_id}


async def test_all_links_of_a_chain_belong_to_one_enqueue() -> None:
    shop = Shop(parent=True)
    await chain(shop.welcome.job(1), shop.welcome).aenqueue()
    await arun_all(shop.app)
    spans = shop.spans("process mail.welcome")
    assert {span.context.trace_id for span in spans} == {shop.one("send").context.trace_id}
    assert len({(span.attributes or {})["messaging.message.conversation_id"] for span in spans}) == 1


@pytest.mark.parametrize("parent", [False, True])
async def test_jobs_of_a_schedule_have_traces_of_their_own_with_a_link_to_where_it_was_added(parent: bool) -> None:
    shop = Shop(parent=parent)
    with shop.provider.get_tracer("web").start_as_current_span("POST /reports"):
        await shop.app.schedules.aadd("hourly", shop.welcome.job(1), every=3600)
    for _ in range(2):
        shop.app.clock.advance(hours=1)
        await arun_all(shop.app)
    create, spans = shop.one("create mail.welcome"), shop.spans("process mail.welcome")
    assert create.kind is SpanKind.PRODUCER
    assert len({create.context.trace_id, *(span.context.trace_id for span in spans)}) == 3
    assert [[link.context.span_id for link in span.links] for span in spans] == [[create.context.span_id]] * 2
    assert {(span.attributes or {})["messaging.windlass.schedule"] for span in spans} == {"hourly"}


async def test_a_schedule_that_code_declares_belongs_to_no_trace() -> None:
    shop = Shop()
    shop.app.schedule("hourly", shop.welcome.job(1), every=3600)
    await shop.app.declare()
    shop.app.clock.advance(hours=1)
    await arun_all(shop.app)
    assert shop.one("process mail.welcome").links == ()


async def test_what_a_handler_enqueues_belongs_to_its_attempt() -> None:
    shop = Shop()

    @shop.app.task(type="outer")
    async def outer() -> None:
        await shop.welcome.aenqueue(1)

    await outer.aenqueue()
    await arun_all(shop.app)
    send = shop.one("send mail.welcome")
    assert send.parent is not None
    assert send.parent.span_id == shop.one("process outer").context.span_id


async def test_an_error_is_recorded_and_a_decision_of_the_handler_is_none() -> None:
    shop = Shop()
    await shop.broken.aenqueue()
    await shop.later.aenqueue()
    await arun_all(shop.app)
    failed, snoozed = shop.one("process broken"), shop.one("process later")
    assert failed.status.status_code is StatusCode.ERROR
    assert (failed.attributes or {})["error.type"] == "LookupError"
    assert [event.name for event in failed.events] == ["exception"]
    assert (snoozed.status.status_code, snoozed.events) == (StatusCode.UNSET, ())


async def test_log_records_of_a_handler_have_the_ids_of_its_span() -> None:
    shop = Shop()
    await shop.welcome.aenqueue(1)
    await arun_all(shop.app)
    process, found = shop.one("process mail.welcome"), fields(shop.records[0])
    assert int(found["trace"], 16) == process.context.trace_id
    assert int(found["span"], 16) == process.context.span_id


async def test_the_context_of_a_request_reaches_the_job_through_a_server_without_opentelemetry() -> None:
    app = App.testing()
    served = asgi(app)
    token = (await app.tokens.acreate("test", ["admin"])).text
    client = httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://windlass/api/v1")
    headers = {"authorization": f"Bearer {token}", "traceparent": PARENT, "tracestate": "a=b"}
    async with client:
        body = {"type": "t", "payload": {}, "meta": {"mine": 1}}
        id_ = (await client.post("/jobs", json=body, headers=headers)).json()["id"]
    assert (await app.jobs.aget(id_)).meta == {"mine": 1, "traceparent": PARENT, "tracestate": "a=b"}


async def test_a_traced_client_of_a_server_puts_its_context_into_the_job() -> None:
    shop, behind = Shop(), App.testing()
    token = (await behind.tokens.acreate("test", ["admin"])).text
    remote = RemoteApp("http://windlass", token=token)
    headers = {"authorization": f"Bearer {token}"}
    client = httpx.AsyncClient(
        transport=httpx.ASGITransport(asgi(behind)), base_url="http://windlass", headers=headers
    )
    remote._connection._clients[asyncio.get_running_loop()] = client
    trace_jobs(remote, tracer_provider=shop.provider)
    id_ = (await remote.aenqueue("t", {})).id
    meta = (await behind.jobs.aget(id_)).meta or {}
    assert meta["traceparent"].split("-")[2] == f"{shop.one('send t').context.span_id:016x}"


@pytest.mark.parametrize("parent", ["", "00-short", PARENT.upper(), PARENT + "\n", "x" * 55])
def test_nonsense_in_a_header_is_dropped(parent: str) -> None:
    assert incoming({"traceparent": parent, "tracestate": "a=b"}) == {}


def test_a_state_that_is_too_long_is_dropped() -> None:
    assert incoming({"traceparent": PARENT, "tracestate": "x" * 600}) == {"traceparent": PARENT}


@pytest.mark.parametrize("meta", [None, "{}", '{"traceparent": 5}', '{"traceparent": "x"}', '["traceparent"]'])
def test_a_job_without_a_readable_trace_has_none(meta: str | None) -> None:
    assert carrier_of(meta) == {}


def test_a_job_with_a_trace_of_its_own_keeps_it_and_without_one_nothing_changes() -> None:
    job = new_job()
    assert with_trace([job])[0] is job
    with carrying({"traceparent": PARENT}):
        (carried,) = with_trace([job])
        assert carrier_of(carried.meta) == {"traceparent": PARENT}
        assert with_trace([carried])[0] is carried
