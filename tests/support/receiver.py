"""A receiver of webhooks: keeps what it is sent, and answers as it is told."""

import asyncio
import base64
import contextlib
import hashlib
import hmac
import json
import ssl
from collections.abc import AsyncIterator
from typing import Any

import msgspec


class Received(msgspec.Struct):
    """One request."""

    target: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> Any:
        return json.loads(self.body)

    def is_signed_by(self, secret: str, body: bytes | None = None) -> bool:
        """Whether one of its signatures is by this secret, as a receiver would check it."""
        content = f"{self.headers['webhook-id']}.{self.headers['webhook-timestamp']}.".encode()
        key = base64.b64decode(secret.removeprefix("whsec_"))
        digest = hmac.new(key, content + (self.body if body is None else body), hashlib.sha256).digest()
        return f"v1,{base64.b64encode(digest).decode()}" in self.headers["webhook-signature"].split()


class Receiver:
    """Answers each request with the next of `answers`, and with 204 after them."""

    def __init__(self) -> None:
        self.requests: list[Received] = []
        self.answers: list[bytes] = []
        self.silent = False
        self.writers: list[asyncio.StreamWriter] = []
        self.port = 0
        self._came = asyncio.Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?from=windlass"

    async def until(self, number: int, seconds: float = 30.0) -> list[Received]:
        """What has come, once it is at least this many."""
        async with asyncio.timeout(seconds), self._came:
            await self._came.wait_for(lambda: len(self.requests) >= number)
        return self.requests

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
            body = await reader.readexactly(int(headers["content-length"]))
            async with self._came:
                self.requests.append(Received(head[0].split(" ")[1], headers, body))
                self._came.notify_all()
            if self.silent:
                await reader.read()
            else:
                writer.write(self.answers.pop(0) if self.answers else answer(204))
                await writer.drain()
        writer.close()


def answer(status: int, *headers: str, body: bytes = b"") -> bytes:
    """An answer as it is sent."""
    lines = [f"HTTP/1.1 {status} Said", *headers, f"content-length: {len(body)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


@contextlib.asynccontextmanager
async def receiving(*answers: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[Receiver]:
    """A receiver on loopback, which gives these answers first."""
    made = Receiver()
    made.answers = [*answers]
    server = await asyncio.start_server(made.handle, "127.0.0.1", 0, ssl=tls)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for writer in made.writers:
            writer.transport.abort()
