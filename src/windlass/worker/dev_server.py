"""The REST server of `windlass dev`: a process of its own on loopback, with a token that is valid for this run.

The token is in no store. The server reads its text from standard input, and stops when that ends, so it does not
outlive this process.
"""

import asyncio
import contextlib
import importlib.util
import os
import socket
import sys
import webbrowser

from windlass.core.tokens import link_code, new_text, new_token_id

HOST = "127.0.0.1"
STOP_SECONDS = 5.0
OPEN_TRIES, OPEN_SECONDS = 100, 0.1
NEEDED = ("jinja2", "starlette", "uvicorn")


class DevServer:
    """A server that is started anew with each worker, at the same address and with the same token."""

    def __init__(self, app: str, port: int, *, opens: bool = False) -> None:
        """`opens`: show the dashboard in a browser once the server listens."""
        self._app = app
        self._port = port
        self._opens = opens
        self._opening: asyncio.Task[None] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self.token = new_text(new_token_id(os.urandom), os.urandom)

    @property
    def address(self) -> str:
        """The address on which it listens."""
        return f"http://{HOST}:{self._port}"

    @property
    def link(self) -> str:
        """The link that logs a browser in, once."""
        return f"{self.address}/login/{link_code(self.token)}"

    async def start(self) -> None:
        """Start it, unless it runs."""
        if self._process is not None and self._process.returncode is None:
            return
        words = ["serve", self._app, "--host", HOST, "--port", str(self._port)]
        words += ["--unready", "0s", "--drain", "1s", "--development"]
        # Not in the terminal's process group: it stops when this process closes its standard input.
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "windlass", *words, stdin=asyncio.subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdin is not None
        self._process.stdin.write(f"{self.token}\n".encode())
        if self._opens:
            self._opens = False
            self._opening = asyncio.create_task(self._open())

    async def _open(self) -> None:
        """Open the browser, as soon as the server listens."""
        for _ in range(OPEN_TRIES):
            try:
                _, writer = await asyncio.open_connection(HOST, self._port)
            except OSError:
                await asyncio.sleep(OPEN_SECONDS)
                continue
            writer.close()
            await asyncio.to_thread(webbrowser.open, self.link)
            return

    async def stop(self) -> None:
        """Let it answer the running requests, and wait for its end."""
        if self._opening is not None:
            self._opening.cancel()
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def missing_part() -> str | None:
    """The package that the server lacks; None if it can be started."""
    return next((name for name in NEEDED if importlib.util.find_spec(name) is None), None)


def usable_port(wanted: int) -> int:
    """This port, or another one if it is taken."""
    for port in (wanted, 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
            return int(probe.getsockname()[1])
    return wanted
