"""Addresses and tokens that cannot be right, and answers that are not a server's own."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import msgspec
import pytest

from windlass.core.ids import new_id
from windlass.core.jobs.job import JobError
from windlass.core.status import Status
from windlass.errors import ConfigError, StoreUnavailable, StoreUnusable
from windlass.remote import RemoteApp, RemoteRefused
from windlass.remote.connection import Connection
from windlass.remote.problems import NOT_WINDLASS
from windlass.remote.work.jobs import _batches
from windlass.remote.work.session import WorkSession
from windlass.remote.work.store import rules
from windlass.server.api.jobs import JobRecord
from windlass.server.problem import Problem
from windlass.server.workers.records import SettleBody, SettlementBody
from windlass.server.workers.settle import MAX_SETTLE_BODY


class Foreign(BaseHTTPRequestHandler):
    """Answers as the proxy of a server that is away, or another server, does."""

    status = 200

    def do_GET(self) -> None:
        self.send_response(self.status)
        if 300 <= self.status < 400:
            self.send_header("location", "https://elsewhere.example/")
        self.send_header("content-length", "6")
        self.end_headers()
        self.wfile.write(b"<html>")

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def foreign() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Foreign)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("http://[::1", "is not a URL"),
        ("http://jobs:port", "is not a URL"),
        ("http://jobs:99999", "should be a URL"),
        ("http:///path", "should be a URL"),
        ("ftp://jobs", "should be a URL"),
        ("https://me:secret@jobs", "should have no user and password"),
    ],
)
def test_what_cannot_be_the_address_of_a_server_is_refused_and_no_password_shown(server: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as refused:
        Connection(server, "wl_1", None)
    assert "secret" not in str(refused.value)


def test_a_token_from_a_file_may_end_with_a_newline_and_a_broken_one_is_not_shown() -> None:
    assert Connection("http://[::1]:8321/jobs/", "wl_1\n", None).token == "wl_1"
    for broken in ("wl_1\nwl_2", "wl_tök"):
        with pytest.raises(ConfigError, match="characters that no token has") as refused:
            Connection("http://jobs", broken, None)
        assert "wl_" not in str(refused.value)


@pytest.mark.parametrize(
    ("status", "said"), [(200, "200"), (301, "to https://elsewhere"), (403, "403"), (404, "404")]
)
async def test_an_answer_that_is_not_a_servers_own_may_pass_and_says_what_it_is(
    foreign: str, status: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Foreign, "status", status)
    connection = Connection(foreign, "wl_1", 5)
    with pytest.raises(StoreUnavailable, match=f"{said}.* not the answer of a Windlass server") as refused:
        await rules(WorkSession(connection))
    await connection.close()
    assert not isinstance(refused.value, StoreUnusable)
    assert refused.value.lasting


def test_settlements_with_long_errors_are_sent_in_parts_that_the_server_takes() -> None:
    error = JobError("ValueError", "m" * 4_000, "ä" * 16_000)
    bodies = [SettlementBody(id=str(n), attempt=1, outcome="failed", error=error) for n in range(1_000)]
    parts = list(_batches(bodies))
    assert [body for part in parts for body in part] == bodies
    assert max(len(msgspec.json.encode(SettleBody(worker="w", settlements=part))) for part in parts) < MAX_SETTLE_BODY


def _record(status: Status, result: Any = None) -> JobRecord:
    now = datetime.now(UTC)
    fields = {"queue": "q", "type": "t", "payload": None, "run_at": now, "created_at": now, "updated_at": now}
    return JobRecord(id=new_id(), status=status, result=result, **fields)  # type: ignore[arg-type]


async def test_a_result_is_waited_for_through_outages_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    app = RemoteApp("http://127.0.0.1:1", token="wl_t")
    refusals = [Problem(status=502, code=NOT_WINDLASS, title="bad gateway"), Problem(status=429, code="r", title="r")]
    outages = [StoreUnavailable("away"), *map(RemoteRefused, refusals)]
    answers: Iterator[JobRecord | Exception]
    answers = iter([_record(Status.RUNNING), *outages, _record(Status.COMPLETED, 7)])

    async def read(_: str) -> JobRecord:
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(app.jobs, "_record", read)
    assert await app._handle(new_id(), False, Any).aresult(timeout=30) == 7
    answers = iter([_record(Status.RUNNING), RemoteRefused(Problem(status=401, code="unauthorized", title="no"))])
    with pytest.raises(RemoteRefused):
        await app._handle(new_id(), False, Any).aresult(timeout=30)
