"""Serving by uvicorn: the default server of `windlass serve`."""

import asyncio
import contextlib
import ipaddress
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator

import msgspec
import uvicorn

from windlass.client.app import App
from windlass.errors import ConfigError
from windlass.observe.systemd import READY, STOPPING, Systemd
from windlass.server.application import DEFAULT_RATE, asgi
from windlass.server.health import Probes
from windlass.server.protocol import GuardedProtocol

MAX_CONNECTIONS = 10_000
KEEP_ALIVE_SECONDS = 30


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of `windlass serve`."""

    host: str = "127.0.0.1"
    port: int = 8321
    rate: str = DEFAULT_RATE
    proxies: tuple[str, ...] = ()
    """Addresses of proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted."""
    hosts: tuple[str, ...] = ()
    """Host names that it answers for. Empty: all; on loopback without a proxy only localhost and addresses."""
    unready: float = 1.0
    """Seconds between the failing of /readyz and the end of listening."""
    drain: float = 30.0
    """Seconds for running requests to end."""
    environment: str = ""
    """Shown on every page of the dashboard."""
    read_only: bool = False
    """Every change is refused."""
    hide: tuple[str, ...] = ()
    """Fields of payloads, results and meta that are not shown."""
    trace_url: str = ""
    """Where a trace is, with `{trace}` for its id."""
    worker_lease: str = "30s"
    """The silence after which a worker over REST counts as dead."""
    certificate: str | None = None
    key: str | None = None
    development: str | None = None
    """The text of a token that is in no store; the server then runs until its standard input ends."""


async def serve(app: App, config: ServerConfig) -> None:
    """Serve until SIGTERM or SIGINT: /readyz fails first, then running requests are answered."""
    if config.development is not None and not is_loopback(config.host):
        raise ConfigError(f"--host {config.host}: a server for development listens on loopback only")
    if not is_loopback(config.host) and not await app.tokens.alist():
        raise ConfigError(
            [
                f"--host {config.host}: there are no tokens, and other machines could reach this address",
                "create one first: windlass token create NAME --scope admin",
            ]
        )
    server = make_server(app, config)
    async with contextlib.AsyncExitStack() as parent:
        if config.development is not None:
            await parent.enter_async_context(_until_input_ends(server))
        await server.serve()


def make_server(app: App, config: ServerConfig) -> "Server":
    """A server that is not started yet."""
    names = ("rate", "environment", "read_only", "hide", "trace_url", "worker_lease", "development")
    hosts = config.hosts or (() if is_loopback(config.host) and not config.proxies else None)
    served = asgi(app, hosts=hosts, **{name: getattr(config, name) for name in names})
    return Server(_uvicorn(served, config), served.state.probes, config.unready)


@contextlib.asynccontextmanager
async def _until_input_ends(server: "Server") -> AsyncIterator[None]:
    """Stop the server when the process that started it ends, which closes its standard input."""
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader()
    pipe, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def watch() -> None:
        await reader.read()
        server.stop(loop)

    task = loop.create_task(watch())
    try:
        yield
    finally:
        task.cancel()
        pipe.close()


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _uvicorn(served: object, config: ServerConfig) -> uvicorn.Config:
    return uvicorn.Config(
        served,  # type: ignore[arg-type]
        host=config.host,
        port=config.port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(config.proxies),
        forwarded_allow_ips=list(config.proxies),
        limit_concurrency=MAX_CONNECTIONS,
        backlog=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, round(config.drain)),
        http=GuardedProtocol,
        ssl_certfile=config.certificate,
        ssl_keyfile=config.key,
        ws="none",
    )


class Server(uvicorn.Server):
    """uvicorn with a stop in two steps, and exit code 0."""

    def __init__(self, config: uvicorn.Config, probes: Probes, unready: float) -> None:
        super().__init__(config)
        self._probes = probes
        self._unready = unready
        self._systemd = Systemd()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals on the event loop, and do not raise them again at the end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop, loop)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and notify systemd."""
        await super().startup(sockets)
        self._systemd.notify(READY)
        self._watchdog = asyncio.create_task(self._systemd.keep_alive())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Notify systemd, and stop listening."""
        self._systemd.notify(STOPPING)
        await super().shutdown(sockets)
        self._watchdog.cancel()

    def stop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Make /readyz fail, and stop listening `unready` seconds later; at a second call at once."""
        if self._probes.stopping:
            self.should_exit = True
        self._probes.stopping = True
        loop.call_later(self._unready, setattr, self, "should_exit", True)
