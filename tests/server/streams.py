"""Listeners of the event stream, in the process of the server."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.applications import Starlette

from windlass import App

SECONDS = 30.0
ENDS = "job.completed,job.dead,job.cancelled"


class Reported(NamedTuple):
    """One event as it came."""

    name: str
    data: dict[str, Any]
    id: str


class Stream:
    """A client of GET /events: its events in order. A closed tap makes it slow."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.events: asyncio.Queue[Reported] = asyncio.Queue()
        self.tap = asyncio.Event()
        self.tap.set()
        self.opened = asyncio.Event()
        self.ended = False
        self.body = b""
        self._rest = b""

    async def send(self, message: Any) -> None:
        """What the server sends."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        self.opened.set()
        await self.tap.wait()
        self.body += message["body"]
        self.ended = not message.get("more_body")
        *frames, self._rest = (self._rest + message["body"]).split(b"\n\n")
        for frame in frames:
            fields = dict(line.split(": ", 1) for line in frame.decode().split("\n") if not line.startswith(":"))
            if "event" in fields:
                self.events.put_nowait(Reported(fields["event"], json.loads(fields["data"]), fields.get("id", "")))

    async def next(self) -> Reported:
        """The next event."""
        async with asyncio.timeout(SECONDS):
            return await self.events.get()

    async def jobs(self, count: int) -> list[tuple[str, str]]:
        """Names and jobs of the next events."""
        return [(reported.name, reported.data["job"]) for reported in [await self.next() for _ in range(count)]]


@asynccontextmanager
async def listening(
    app: App, served: Starlette, *scopes: str, last: str = "", limits: Any = None, token: str = "", **query: Any
) -> AsyncIterator[Stream]:
    """A stream that is open, with a token of its own."""
    query = query if "job" in query else {"event": ENDS, **query}
    text = token or (await app.tokens.acreate("listener", scopes or ("read",), **(limits or {}))).text
    stream = Stream()
    gone = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await gone.wait()
        return {"type": "http.disconnect"}

    headers = [(b"authorization", f"Bearer {text}".encode()), (b"last-event-id", last.encode())]
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/v1/events",
        "raw_path": b"/api/v1/events",
        "root_path": "",
        "scheme": "http",
        "query_string": urlencode(query, doseq=True).encode(),
        "headers": headers[: 2 if last else 1],
        "client": ("127.0.0.1", 1),
        "server": ("windlass", 80),
        "http_version": "1.1",
    }
    task = asyncio.create_task(served(scope, receive, stream.send))
    async with asyncio.timeout(SECONDS):
        await stream.opened.wait()
    yield stream
    stream.tap.set()
    gone.set()
    async with asyncio.timeout(SECONDS):
        await task
