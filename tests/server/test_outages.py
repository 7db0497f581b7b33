"""A store that is down, frozen, restarted or read-only: 503 in time, never a hang, and nothing half done."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import psycopg
import pytest
import redis as redis_driver

from tests.server.test_serve import Served
from tests.support.processes import children
from tests.support.servers.postgres import PostgresServer
from tests.support.servers.redis import RedisServer, new_redis
from windlass import App
from windlass.server import asgi

JOB = {"type": "mail"}
IN_TIME = 20.0
"""The client's deadline is 5 seconds; a busy machine needs some more."""


@asynccontextmanager
async def api_of(address: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a server on this store, with a token that is known to it."""
    app = App(address)
    served = asgi(app)
    token = (await app.tokens.acreate("t", ["admin"])).text
    async with (
        served.router.lifespan_context(served),
        httpx.AsyncClient(
            transport=httpx.ASGITransport(served, raise_app_exceptions=False),
            base_url="http://windlass",
            headers={"authorization": f"Bearer {token}"},
        ) as client,
    ):
        assert (await client.post("/api/v1/jobs", json=JOB)).status_code == 201
        yield client


async def check_away(api: httpx.AsyncClient) -> None:
    """Reads and writes are answered in time; liveness is not readiness."""
    for method, path, body in (("POST", "/api/v1/jobs", JOB), ("GET", "/api/v1/jobs", None)):
        begun = time.monotonic()
        answer = await api.request(method, path, json=body, timeout=60)
        assert answer.status_code == 503, answer.text
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["retry-after"]
        assert "://" not in answer.text, "an answer names no server"
        assert answer.headers["x-request-id"] in answer.text
        assert time.monotonic() - begun < IN_TIME
    assert (await api.get("/readyz")).status_code == 503
    assert (await api.get("/healthz")).status_code == 200


async def check_back(api: httpx.AsyncClient) -> None:
    """The next calls succeed once the store answers again."""
    async with asyncio.timeout(60):
        while (await api.get("/readyz")).status_code != 200:
            pass
        while (await api.post("/api/v1/jobs", json=JOB)).status_code == 503:
            pass
    assert (await api.post("/api/v1/jobs", json=JOB)).status_code == 201


async def test_a_postgres_that_is_down_and_started_again(postgres_server: PostgresServer) -> None:
    async with api_of(postgres_server.dsn()) as api:
        postgres_server.stop()
        await check_away(api)
        postgres_server.start()
        await check_back(api)


async def test_a_postgres_that_freezes(postgres_server: PostgresServer) -> None:
    async with api_of(postgres_server.dsn()) as api:
        frozen = [postgres_server.pid, *children(postgres_server.pid)]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        try:
            await check_away(api)
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
        await check_back(api)


async def test_a_postgres_that_is_read_only(postgres_server: PostgresServer) -> None:
    async with api_of(postgres_server.dsn()) as api:
        with psycopg.connect(postgres_server.dsn(), autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET default_transaction_read_only = on")
            connection.execute("SELECT pg_reload_conf()")
            await _until_refused(api)
            assert (await api.get("/api/v1/stats")).status_code == 200
            connection.execute("SET default_transaction_read_only = off")
            connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
            connection.execute("SELECT pg_reload_conf()")
        await check_back(api)


async def test_a_redis_that_freezes(redis_server: RedisServer) -> None:
    async with api_of(redis_server.url) as api:
        os.kill(redis_server.pid, signal.SIGSTOP)
        try:
            await check_away(api)
        finally:
            os.kill(redis_server.pid, signal.SIGCONT)
        await check_back(api)


async def test_a_redis_that_is_read_only(redis_server: RedisServer) -> None:
    async with api_of(redis_server.url) as api:
        admin = redis_driver.Redis(port=redis_server.port)
        admin.config_set("min-replicas-to-write", 1)
        await _until_refused(api)
        admin.config_set("min-replicas-to-write", 0)
        admin.close()
        await check_back(api)


async def _until_refused(api: httpx.AsyncClient) -> None:
    """Writes are refused with 503, for certain: nothing was stored."""
    async with asyncio.timeout(30):
        while (answer := await api.post("/api/v1/jobs", json=JOB)).status_code == 201:
            pass
    assert answer.status_code == 503, answer.text
    assert "maybe_done" not in answer.json()


async def test_a_server_that_stops_while_its_store_is_down_closes_everything(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    app = App(redis_server.url)
    served = asgi(app)
    token = (await app.tokens.acreate("t", ["admin"])).text
    async with served.router.lifespan_context(served):
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(served),
            base_url="http://windlass/api/v1",
            headers={"authorization": f"Bearer {token}"},
        ) as client:
            await client.post("/jobs", json=JOB)
            claim = {"worker": "w", "claim": 1, "queues": ["default"], "types": ["mail"], "limit": 1}
            (job,) = (await client.post("/claims", json=claim)).json()["jobs"]
            done = {"id": job["id"], "attempt": job["attempt"], "outcome": "completed"}
            await client.post("/claims/settle", json={"worker": "w", "settlements": [done]})
        redis_server.stop()
    assert app._store_handle.opened is None
    assert not [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
    assert "Traceback" not in caplog.text


def test_a_process_that_serves_ends_with_0_while_its_store_is_down(tmp_path: Path) -> None:
    redis: RedisServer = new_redis()
    redis.start()
    served = Served(tmp_path, redis.url)
    try:
        process = served.start("--unready", "0s", "--drain", "10s")
        served.log_in()
        claim = {"worker": "w", "claim": 1, "queues": ["default"], "types": ["mail"], "limit": 1}
        assert served.client.post("/api/v1/claims", json=claim).status_code == 200
        redis.kill()
        process.send(signal.SIGTERM)
        assert process.wait(10 + IN_TIME) == 0
        for word in ("Traceback", "ResourceWarning", "never retrieved", "Application shutdown failed"):
            assert word not in process.output
    finally:
        served.end()
        redis.remove()
