"""Calls of the REST server."""

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

import httpx
import msgspec

from windlass.client.verbs.group import Home
from windlass.errors import ConfigError, StoreUnavailable
from windlass.remote.problems import NOT_WINDLASS, error_of
from windlass.server.operation import PREFIX, etag
from windlass.server.problem import Problem

T = TypeVar("T")

SERVER_VARIABLE = "WINDLASS_SERVER"
TOKEN_VARIABLE = "WINDLASS_TOKEN"
MAX_PORT = 65_535


class _OwnCalls(logging.Filter):
    """Leaves out the log lines of httpx about calls of the server, one for each call."""

    servers: ClassVar[set[str]] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.INFO or not any(
            str(each).startswith(tuple(self.servers)) for each in record.args or ()
        )


logging.getLogger("httpx").addFilter(_OwnCalls())


class Connection:
    """A server and a token; one pool of connections for each event loop."""

    def __init__(self, server: str | None, token: str | None, seconds: float | None) -> None:
        self.server = _checked_server((server or os.environ.get(SERVER_VARIABLE, "")).rstrip("/"))
        # A file with a token ends with a newline, which is not part of it.
        self.token = (token or os.environ.get(TOKEN_VARIABLE, "")).strip()
        if not self.token:
            raise ConfigError(f"there is no token for {self.server}: set {TOKEN_VARIABLE}, or give token=")
        if not (self.token.isascii() and self.token.isprintable()):
            raise ConfigError(f"the token for {self.server} has characters that no token has: was it copied whole?")
        self._seconds = seconds
        _OwnCalls.servers.add(f"{self.server}/")
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()

    async def get(self, path: str, kind: type[T], **query: Any) -> T:
        """The answer to GET, as a value of this type."""
        return await self.call("GET", path, kind, query=query)

    async def call(
        self,
        method: str,
        path: str,
        kind: type[T],
        *,
        body: Any = None,
        query: Mapping[str, Any] | None = None,
        version: str | None = None,
        seconds: float | None = None,
    ) -> T:
        """The answer, as a value of this type; raises what the verb of `App` raises.

        `version`: of If-Match; `seconds`: instead of the deadline of the connection.
        """
        given = {name: _text(value) for name, value in (query or {}).items() if value not in (None, ())}
        content = None if body is None else msgspec.json.encode(body)
        headers = {} if body is None else {"content-type": "application/json"}
        if version is not None:
            headers["if-match"] = etag(version)
        try:
            response = await self._client().request(
                method,
                PREFIX + path,
                params=given,
                content=content,
                headers=headers,
                timeout=self._seconds if seconds is None else seconds,
            )
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise StoreUnavailable(f"{self.server}: {_said(error)}") from error
        except httpx.HTTPError as error:
            raise StoreUnavailable(f"{self.server}: {_said(error)}", maybe_done=method != "GET") from error
        if response.status_code >= 400:
            raise error_of(_problem(response))
        if kind is type(None) and response.is_success:
            return None
        try:
            if response.is_success:
                return msgspec.json.decode(response.content, type=kind)
        except msgspec.MsgspecError:
            pass
        raise StoreUnavailable(f"{self.server}: {_foreign(response)}", maybe_done=method != "GET", lasting=True)

    async def close(self) -> None:
        """Close the connections of this event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        found = self._clients.get(loop)
        if found is None:
            try:
                found = self._clients[loop] = httpx.AsyncClient(
                    base_url=self.server, headers={"authorization": f"Bearer {self.token}"}, timeout=self._seconds
                )
            except (ImportError, ValueError) as error:
                raise ConfigError(f"the proxy of the environment for {self.server} cannot be used: {error}") from None
        return found


class ThroughServer:
    """The base of groups of verbs that call a server instead of the store."""

    def __init__(self, home: Home, connection: Connection) -> None:
        self._home = home
        self._connection = connection


def _checked_server(server: str) -> str:
    """The address, if it is valid. It is shown in logs, so a password in it is refused."""
    try:
        url = httpx.URL(server)
    except httpx.InvalidURL as error:
        raise ConfigError(f"server {server!r} is not a URL: {error}") from None
    if url.userinfo:
        raise ConfigError(f"server {url.host} should have no user and password: the token goes into {TOKEN_VARIABLE}")
    if url.scheme not in ("http", "https") or not url.host or (url.port or 0) > MAX_PORT or url.query or url.fragment:
        raise ConfigError(f"server {server!r} should be a URL such as https://jobs.example.com")
    return server


def _foreign(response: httpx.Response) -> str:
    """The error for an answer that is not from a Windlass server, such as a proxy's page or redirect."""
    to = f" to {response.headers['location']}" if response.is_redirect else ""
    return f"{response.status_code} {response.reason_phrase}{to}, which is not the answer of a Windlass server"


def _problem(response: httpx.Response) -> Problem:
    try:
        return msgspec.json.decode(response.content, type=Problem)
    except msgspec.MsgspecError:
        # A proxy in between has answered.
        return Problem(status=response.status_code, code=NOT_WINDLASS, title=_foreign(response), maybe_done=True)


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else ",".join(value) if isinstance(value, list | tuple) else str(value)
