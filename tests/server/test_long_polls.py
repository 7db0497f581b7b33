"""Claims that wait: what they need is done once for all of them, and each ends when its caller is gone."""

import asyncio
import json
from contextvars import ContextVar
from typing import Any

import pytest
from starlette.applications import Starlette

from tests.server.conftest import Client, Connect, enqueue
from tests.server.test_workers import MAIL, claim, is_waiting, service, work
from tests.support.addresses import on_sqlite
from windlass import App
from windlass.server.access import Access
from windlass.server.workers import long_polls

__all__ = ["work"]
pytestmark = on_sqlite


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_polls, "CHECK_SECONDS", 0.05)


async def waiting(served: Starlette, count: int) -> None:
    """Wait until this number of claims waits."""
    while sum(map(len, service(served).polls._waiting.values())) != count:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def test_one_check_of_a_token_serves_all_claims_that_wait_with_it(
    served: Starlette, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = []

    async def recheck(self: Access, request: Any) -> None:
        checked.append(request.headers["authorization"])

    monkeypatch.setattr(Access, "recheck", recheck)
    first, second = await connect("work"), await connect("work")
    clients = [first] * 20 + [second] * 20
    claims = [asyncio.create_task(claim(each, worker=f"w{n}", wait=20)) for n, each in enumerate(clients)]
    await waiting(served, 40)
    checked.clear()
    while len(checked) < 10:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    pairs = [set(checked[at : at + 2]) for at in range(0, 10, 2)]
    assert pairs == [{first.headers["authorization"], second.headers["authorization"]}] * 5
    served.state.probes.stopping = True
    assert await asyncio.gather(*claims) == [[]] * 40


async def test_a_claim_whose_caller_disconnects_takes_no_job(served: Starlette, api: Client, work: Client) -> None:
    body, gone = json.dumps({"worker": "w1", "claim": 1, **MAIL, "wait": 25}).encode(), asyncio.Event()
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> dict[str, Any]:
        if messages:
            return messages.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        """Discard the answer."""

    headers = {**work.headers, "content-type": "application/json", "host": "windlass"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/v1/claims",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    call = asyncio.create_task(served(scope, receive, send))
    await is_waiting(served)
    gone.set()
    await asyncio.wait_for(call, 5)
    id_ = await enqueue(api)
    assert (await api.get(f"/jobs/{id_}")).json()["status"] == "pending"


async def test_a_poll_that_failed_begins_again_while_claims_wait(
    app: App, served: Starlette, api: Client, work: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:

        async def fail(*_: object) -> bool:
            raise RuntimeError("out of order")

        broken.setattr(long_polls.LongPolls, "_wake_some", fail)
        claimed = asyncio.create_task(claim(work, wait=20))
        await is_waiting(served)
        await asyncio.sleep(0.2)
    id_ = await enqueue(api)
    assert [job["id"] for job in await asyncio.wait_for(claimed, 5)] == [id_]


async def test_a_stop_answers_claims_while_the_poll_waits_for_the_store(
    served: Starlette, work: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*_: object) -> bool:
        await asyncio.sleep(60)
        return False

    monkeypatch.setattr(long_polls.LongPolls, "_wake_some", hang)
    claimed = asyncio.create_task(claim(work, wait=20))
    await is_waiting(served)
    served.state.probes.stopping = True
    assert await asyncio.wait_for(claimed, 5) == []


async def test_the_caller_of_a_waiting_claim_is_checked_in_the_context_of_its_request(
    served: Starlette, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller, checked = ContextVar("caller", default=""), set[tuple[str, str]]()

    async def recheck(self: Access, request: Any) -> None:
        checked.add((request.headers["authorization"], caller.get()))

    monkeypatch.setattr(Access, "recheck", recheck)
    claims, expected = [], set()
    for name in ("first", "second"):
        client = await connect("work")
        caller.set(name)  # what a middleware around a mounted server does; the claim's task copies it
        claims.append(asyncio.create_task(claim(client, worker=name, wait=20)))
        expected.add((client.headers["authorization"], name))
    await waiting(served, 2)
    checked.clear()
    while len(checked) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert checked == expected
    served.state.probes.stopping = True
    assert await asyncio.gather(*claims) == [[], []]
