"""One POST to a webhook, to an address that was checked: no redirects, no proxies, bounded time and answer."""

import asyncio
import contextlib
import functools
import os
import socket
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import SplitResult, urlsplit

import msgspec

from windlass.core.text import cut, printable
from windlass.core.webhooks.addresses import Network, is_allowed, refusal
from windlass.native import pool

MAX_HEAD = 16 * 1024
"""Bytes of the answer's status and headers."""
MAX_ANSWER = 64 * 1024
"""Bytes of its body that are read, and dropped."""
BODY_SECONDS = 1.0
MAX_INFORMATIONAL = 5
MAX_RESOLVERS = 32
MAX_SHOWN = 200
MAX_RETRY_AFTER = 86_400
_PORTS = {"http": 80, "https": 443}


class DeliveryFailed(Exception):
    """The receiver did not accept a delivery; a later attempt may succeed."""


class AddressRefused(Exception):
    """The receiver's name leads to an address that is not allowed."""


class Answer(msgspec.Struct, frozen=True):
    """The status of an answer, and how long it asks to wait."""

    status: int
    retry_after: int | None = None


async def post(
    url: str, headers: Mapping[str, str], body: bytes, networks: Sequence[Network], seconds: float
) -> Answer:
    """Send a body; raises DeliveryFailed and AddressRefused.

    The name is resolved once, every address that it has is checked, and so is the address that the connection has:
    a name that leads elsewhere at the second look (DNS rebinding) gains nothing.
    """
    parts = urlsplit(url)
    try:
        async with asyncio.timeout(seconds) as limit:
            addresses = await _resolve(parts, networks)
            async with _connected(parts, addresses, networks) as (reader, writer):
                writer.write(_request(parts, headers, body))
                await writer.drain()
                answer = await _answer(reader)
                limit.reschedule(None)  # the status counts, even if the body is slow
                await _drop_body(reader)
                return answer
    except TimeoutError:
        raise DeliveryFailed(f"no answer within {seconds:g} s") from None
    except (OSError, EOFError) as error:
        raise DeliveryFailed(cut(printable(f"{type(error).__name__}: {error}"), MAX_SHOWN)) from error


async def _resolve(parts: SplitResult, networks: Sequence[Network]) -> list[str]:
    """The addresses of the receiver; all of them must be allowed."""
    assert parts.hostname is not None
    loop = asyncio.get_running_loop()
    look = functools.partial(socket.getaddrinfo, parts.hostname, _port(parts), type=socket.SOCK_STREAM)
    found = await loop.run_in_executor(_resolvers(os.getpid()), look)
    addresses = list(dict.fromkeys(str(each[4][0]) for each in found))
    for each in addresses:
        _check(parts, each, networks)
    if not addresses:
        raise DeliveryFailed(f"{parts.hostname} has no address")
    return addresses


def _check(parts: SplitResult, address: str, networks: Sequence[Network]) -> None:
    if (problem := refusal(address, networks)) is not None:
        raise AddressRefused(f"nothing is sent to {parts.hostname}: {problem}")
    if parts.scheme == "http" and not is_allowed(address, networks):
        raise AddressRefused(
            f"nothing is sent to {parts.hostname} without TLS: {address} is not in an allowed network"
        )


@contextlib.asynccontextmanager
async def _connected(
    parts: SplitResult, addresses: Sequence[str], networks: Sequence[Network]
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection to the first address that accepts one."""
    reader, writer = await _connect(parts, addresses)
    try:
        _check(parts, str(writer.get_extra_info("peername")[0]), networks)
        yield reader, writer
    finally:
        writer.transport.abort()  # closing would wait for a slow receiver


async def _connect(parts: SplitResult, addresses: Sequence[str]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    tls: dict[str, Any] = {"ssl": _tls(), "server_hostname": parts.hostname} if parts.scheme == "https" else {}
    for last, address in enumerate(addresses, 1 - len(addresses)):
        try:
            return await asyncio.open_connection(address, _port(parts), limit=MAX_HEAD, **tls)
        except OSError:
            if last == 0:
                raise
    raise AssertionError


@functools.cache
def _tls() -> ssl.SSLContext:
    """A TLS context with the system's certificates, or those of SSL_CERT_FILE."""
    return ssl.create_default_context()


@functools.lru_cache(maxsize=1)
def _resolvers(pid: int) -> ThreadPoolExecutor:
    """Threads for name lookups: those of the event loop are for handlers, which a slow name server must not block."""
    return pool(MAX_RESOLVERS, "windlass-resolver")


def _port(parts: SplitResult) -> int:
    return parts.port or _PORTS[parts.scheme]


def _request(parts: SplitResult, headers: Mapping[str, str], body: bytes) -> bytes:
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else str(parts.hostname)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    lines = [
        f"POST {target} HTTP/1.1",
        f"host: {host}{f':{parts.port}' if parts.port else ''}",
        *(f"{name}: {value}" for name, value in headers.items()),
        f"content-length: {len(body)}",
        "connection: close",
    ]
    return "\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + body


async def _answer(reader: asyncio.StreamReader) -> Answer:
    for _ in range(MAX_INFORMATIONAL):
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        except asyncio.LimitOverrunError:
            raise DeliveryFailed(f"the headers of the answer have more than {MAX_HEAD:,} bytes") from None
        status, *lines = head.split("\r\n")
        version, _, rest = status.partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdecimal():
            raise DeliveryFailed(f"the answer is not HTTP: {cut(printable(status), MAX_SHOWN)}")
        if not 100 <= int(rest[:3]) < 200:
            return Answer(int(rest[:3]), _retry_after(lines))
    raise DeliveryFailed(f"the first {MAX_INFORMATIONAL} answers are all informational")


def _retry_after(lines: Sequence[str]) -> int | None:
    """Seconds; a date is left to the policy."""
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip().lower() == "retry-after" and value.strip().isdecimal() and value.isascii():
            return min(int(value.strip()[:9]), MAX_RETRY_AFTER)
    return None


async def _drop_body(reader: asyncio.StreamReader) -> None:
    """Read the body and drop it: a receiver that is cut off while it answers may take that for a failure."""
    left = MAX_ANSWER
    with contextlib.suppress(TimeoutError, OSError):
        async with asyncio.timeout(BODY_SECONDS):
            while left > 0 and (part := await reader.read(left)):
                left -= len(part)
