"""An app on every kind of store, its server in this process, and clients with tokens."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from windlass import App
from windlass.server import asgi

Client = httpx.AsyncClient
Connect = Callable[..., Awaitable[Client]]


@pytest.fixture
async def app(address: str) -> AsyncIterator[App]:
    """An app with two tasks."""
    made = App(address)

    @made.task(type="mail.welcome")
    async def welcome(user_id: int, *, lang: str = "en") -> str:
        return f"{user_id} {lang}"

    @made.task(type="img.resize", queue="images")
    def resize(path: str) -> None: ...

    yield made
    await made.aclose()


@pytest.fixture
async def served(app: App) -> AsyncIterator[Starlette]:
    """Its server, from start to stop."""
    made = asgi(app)
    async with made.router.lifespan_context(made):
        yield made


@pytest.fixture
async def connect(app: App, served: Starlette) -> AsyncIterator[Connect]:
    """Makes clients: `await connect("read", queues=["mail"])`."""
    clients: list[Client] = []

    async def client(*scopes: str, queues: Sequence[str] = (), types: Sequence[str] = ()) -> Client:
        new = await app.tokens.acreate("test", scopes, queues=queues, types=types)
        made = httpx.AsyncClient(
            transport=httpx.ASGITransport(served, raise_app_exceptions=False),
            base_url="http://windlass/api/v1",
            headers={"authorization": f"Bearer {new.text}"},
        )
        clients.append(made)
        return made

    yield client
    for each in clients:
        await each.aclose()


@pytest.fixture
async def api(connect: Connect) -> Client:
    """A client that may do everything."""
    return await connect("admin")


async def enqueue(api: Client, user_id: int = 1, **more: Any) -> str:
    """The id of a new job."""
    answer = await api.post("/jobs", json={"type": "mail.welcome", "payload": {"user_id": user_id}, **more})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])
