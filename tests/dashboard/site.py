"""A served dashboard with a worker in a thread of its own, and the tasks of a small shop."""

import asyncio
import threading
from typing import Any, Literal

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.support.processes import until
from windlass import App, Context
from windlass.server import asgi


def make_app(address: str, steps: threading.Semaphore) -> App:
    """A shop: one task that works, one that fails as told, one that logs and reports progress, at once or step by
    step.
    """
    app = App(address)

    @app.task(type="mail.welcome", queue="mail")
    async def welcome(payload: Any) -> Any:
        return payload

    @app.task(type="bill.charge", queue="bills", max_attempts=1)
    async def charge(how: str) -> None:
        raise {"declined": ValueError, "away": ConnectionError}[how](f"<b>{how}</b>")

    @app.task(type="img.resize", queue="images")
    async def resize(ctx: Context, steps: int) -> None:
        for step in range(steps):
            await ctx.log(f"step {step}")
            await ctx.progress(step + 1, steps)

    @app.task(type="img.follow", queue="images")
    async def follow(ctx: Context, count: int) -> None:
        for step in range(count):
            await asyncio.to_thread(steps.acquire, timeout=60)
            await ctx.log(f"step {step}")
            await ctx.progress(step + 1, count)

    @app.task(type="order.place", queue="mail")
    async def place(
        amount: int,
        note: str,
        express: bool = False,
        size: Literal["s", "m"] = "s",
        price: float | None = None,
        lines: list[int] = [],  # noqa: B006
    ) -> int:
        return amount

    app.schedule("nightly", welcome.job("tick"), cron="0 3 * * *", tz="Europe/Berlin")
    app.queue("mail", max_concurrency=5)
    _add_odd_tasks(app)
    return app


def _add_odd_tasks(app: App) -> None:
    """One that says anything and dies, one whose result is no JSON."""

    @app.task(type="odd.words", queue="bills", max_attempts=1)
    async def odd(ctx: Context, text: str) -> None:
        await ctx.log(text)
        await ctx.progress(1, 2, text[:200])
        raise ValueError(text)

    @app.task(type="odd.numbers", queue="bills", max_attempts=1)
    async def numbers(name: str) -> Any:
        return {"nan": float("nan"), "infinity": float("inf"), "2^63": 2**63}[name]


on_stores = pytest.mark.parametrize(
    "address", ["sqlite", "postgres", pytest.param("redis", marks=pytest.mark.extended)], indirect=True
)
"""Every page and action: on SQLite and PostgreSQL in `make test`, on Redis in `make test-all`."""


class Site:
    """The server, and an app of the test's own on the same store."""

    def __init__(self, address: str, port: int, prefix: str = "") -> None:
        """With a prefix it is mounted in another app, which lets everyone in."""
        self.address = address
        self.url = f"http://127.0.0.1:{port}{prefix}"
        self._prefix = prefix
        self.steps = threading.Semaphore(0)
        """What lets a job of img.follow go on."""
        self.app = make_app(address, self.steps)
        self.serving = make_app(address, self.steps)
        self._server = uvicorn.Server(uvicorn.Config("", port=port, log_config=None, ws="none"))
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Serve, and run jobs."""
        self._thread.start()
        until(lambda: self._server.started, "the dashboard is served")

    def stop(self) -> None:
        """The end of both."""
        self._served.state.probes.stopping = True  # open streams end
        self._server.should_exit = True
        self._thread.join(30)
        self.app.close()

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        if self._prefix:
            self._served = asgi(self.serving, environment="test", auth=lambda request: ("guest", ["admin"], []))
            self._server.config.app = Starlette(routes=[Mount(self._prefix, self._served)])
        else:
            self._served = self._server.config.app = asgi(self.serving, environment="test")
        async with self.serving.worker(concurrency=4, queues=["bills", "images", "mail"]):
            await self._server.serve()

    def token(self, *scopes: str, **limits: Any) -> str:
        """The text of a new token."""
        return self.app.tokens.create("operator", scopes, **limits).text

    def enqueue(self, type_: str, payload: dict[str, Any], **options: Any) -> str:
        """The id of a new job."""
        return self.app.enqueue(type_, payload, **options).id

    def until_status(self, id_: str, status: str) -> None:
        """Wait for a status of a job."""
        until(lambda: self.app.jobs.get(id_).status == status, f"job {id_} is {status}")
