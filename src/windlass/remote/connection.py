"""Calls of the REST server."""

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

import httpx
import msgspec

from windlass.errors import ConfigError, StoreUnavailable
from windlass.remote.problems import error_of
from windlass.server.operation import PREFIX, etag
from windlass.server.problem import Problem

T = TypeVar("T")

SERVER_VARIABLE = "WINDLASS_SERVER"
TOKEN_VARIABLE = "WINDLASS_TOKEN"


class _OwnCalls(logging.Filter):
    """Calls to our server are no news of the program: httpx would log each of them."""

    servers: ClassVar[set[str]] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.INFO or not any(
            str(each).startswith(tuple(self.servers)) for each in record.args or ()
        )


logging.getLogger("httpx").addFilter(_OwnCalls())


class Connection:
    """A server and a token; one pool of connections for each event loop."""

    def __init__(self, server: str | None, token: str | None, seconds: float | None) -> None:
        self.server = (server or os.environ.get(SERVER_VARIABLE, "")).rstrip("/")
        if not self.server.startswith(("http://", "https://")):
            raise ConfigError(f"server {self.server!r} should be a URL such as https://jobs.example.com")
        self.token = token or os.environ.get(TOKEN_VARIABLE, "")
        if not self.token:
            raise ConfigError(f"there is no token for {self.server}: set {TOKEN_VARIABLE}, or give token=")
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
        given = {name: _text(value) for name, value in (query or {}).items() if value not in (None, (), "")}
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
        if kind is type(None):
            return None
        return msgspec.json.decode(response.content, type=kind)

    async def close(self) -> None:
        """Close the connections of this event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()

    def _client(self) -> httpx.AsyncClient:
        loop = asyncio.get_running_loop()
        found = self._clients.get(loop)
        if found is None:
            found = self._clients[loop] = httpx.AsyncClient(
                base_url=self.server, headers={"authorization": f"Bearer {self.token}"}, timeout=self._seconds
            )
        return found


def _problem(response: httpx.Response) -> Problem:
    try:
        return msgspec.json.decode(response.content, type=Problem)
    except msgspec.MsgspecError:
        # A proxy in between may answer in its own way.
        title = f"{response.status_code} {response.reason_phrase}"
        return Problem(status=response.status_code, code="not_windlass", title=title, maybe_done=True)


def _said(error: Exception) -> str:
    return str(error) or type(error).__name__


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else ",".join(value) if isinstance(value, list | tuple) else str(value)
