"""`windlass serve`: a real process, its stops, its store away, TLS, and a token that is needed for the outside."""

import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.processes import Process, Processes, until
from tests.support.servers.ports import free_port
from tests.support.servers.redis import RedisServer, new_redis
from windlass import App


class Served:
    """A server in a process of its own."""

    def __init__(self, folder: Path, store: str, **environment: str) -> None:
        self.app = App(store)
        self.processes = Processes(folder, {"WINDLASS_STORE": store, **environment})
        self.port = free_port()

    def start(self, *options: str) -> Process:
        """Start it, and wait until it is ready."""
        process = self.processes.start("serve", "-m", "windlass", "serve", "--port", str(self.port), *options)
        scheme = "https" if "--tls-key" in options else "http"
        self.client = httpx.Client(base_url=f"{scheme}://127.0.0.1:{self.port}", verify=False, timeout=20)
        until(lambda: process.ended or self.status("/readyz") == 200, "the server is ready")
        return process

    def status(self, path: str) -> int:
        """The status of a path; 0: no connection."""
        try:
            return self.client.get(path).status_code
        except httpx.TransportError:
            return 0

    def log_in(self) -> None:
        """Use a token for all calls."""
        self.client.headers["authorization"] = f"Bearer {self.app.tokens.create('test', ['admin']).text}"

    def end(self) -> None:
        """Everything ends."""
        self.client.close()
        self.processes.end()
        self.app.close()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path, f"sqlite:///{tmp_path}/jobs.db")
    yield made
    made.end()


def test_an_address_that_others_reach_is_refused_without_tokens(served: Served) -> None:
    process = served.start("--host", "0.0.0.0")
    assert process.wait() == 2
    assert "there are no tokens" in process.output
    assert "windlass token create" in process.output


def test_a_stop_lets_readiness_fail_first_and_answers_what_runs(served: Served) -> None:
    process = served.start("--unready", "2s")
    served.log_in()
    body = b'{"type": "mail", "payload": {}}'
    answers: list[bytes] = []
    token = served.client.headers["authorization"]

    def slow_request() -> None:
        with socket.create_connection(("127.0.0.1", served.port)) as line:
            head = f"POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\n"
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
            line.sendall(head.encode() + body[:10])
            stopping.wait(20)
            line.sendall(body[10:])
            with line.makefile("rb") as reader:
                answers.append(reader.readline())

    stopping = threading.Event()
    thread = threading.Thread(target=slow_request)
    thread.start()
    process.send(signal.SIGTERM)
    until(lambda: served.status("/readyz") == 503, "readiness fails")
    assert served.status("/healthz") == 200
    stopping.set()
    thread.join(30)
    assert process.wait() == 0
    assert answers == [b"HTTP/1.1 201 Created\r\n"]
    assert served.app.stats.counts().totals["pending"] == 1


def test_a_stop_ends_event_streams_and_waits_for_none(served: Served) -> None:
    process = served.start("--unready", "0s", "--drain", "60s")
    served.log_in()
    with served.client.stream("GET", "/api/v1/events", params={"event": "job.cancelled"}) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "retry: 1000"
        job = served.app.enqueue("mail", {})
        served.app.jobs.cancel(job.id)
        reported = next(line for line in lines if line.startswith("data: "))
        assert job.id in reported
        process.send(signal.SIGTERM)
        assert 'data: {"reason":"stopping"}' in list(lines)
    assert process.wait() == 0


def test_a_store_that_is_away_is_answered_with_503_in_time_and_again_when_it_is_back(tmp_path: Path) -> None:
    redis: RedisServer = new_redis()
    redis.start()
    served = Served(tmp_path, redis.url)
    try:
        served.start()
        served.log_in()
        assert served.status("/api/v1/jobs") == 200
        redis.kill()
        begun = time.monotonic()
        answer = served.client.post("/api/v1/jobs", json={"type": "mail"})
        assert answer.status_code == 503, answer.text
        assert answer.headers["retry-after"]
        assert answer.headers["content-type"] == "application/problem+json"
        assert time.monotonic() - begun < 15, "an answer within the client's deadline"
        assert served.status("/readyz") == 503
        assert served.status("/healthz") == 200
        redis.start()
        until(lambda: served.status("/api/v1/jobs") == 200, "the store is back")
        assert served.client.post("/api/v1/jobs", json={"type": "mail"}).status_code == 201
    finally:
        served.end()
        redis.remove()


def test_tls_by_a_certificate_and_its_key(served: Served, tmp_path: Path) -> None:
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    subprocess.run([*words, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    served.start("--tls-certificate", str(certificate), "--tls-key", str(key))
    served.log_in()
    assert served.status("/api/v1/jobs") == 200


def test_two_servers_on_one_store_see_the_same_jobs_and_requests(served: Served, tmp_path: Path) -> None:
    served.start()
    served.log_in()
    second = free_port()
    served.processes.start("serve", "-m", "windlass", "serve", "--port", str(second))
    other = httpx.Client(base_url=f"http://127.0.0.1:{second}", headers=served.client.headers)
    until(lambda: _answers(other), "the second server is ready")
    headers = {"Idempotency-Key": "k"}
    first = served.client.post("/api/v1/jobs", json={"type": "mail"}, headers=headers)
    again = other.post("/api/v1/jobs", json={"type": "mail"}, headers=headers)
    assert again.json() == first.json()
    assert len(other.get("/api/v1/jobs").json()["jobs"]) == 1
    other.close()


def test_the_text_of_a_token_is_in_no_log(served: Served) -> None:
    process = served.start()
    served.log_in()
    assert served.status("/api/v1/jobs") == 200
    assert served.status("/api/v1/nowhere") == 404
    secret = served.client.headers["authorization"].rpartition("_")[2]
    process.send(signal.SIGTERM)
    process.wait()
    assert secret not in process.output


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False
