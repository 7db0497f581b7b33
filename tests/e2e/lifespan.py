"""A web application whose processes run its jobs too: an embedded worker in its lifespan."""

import contextlib
import os
from collections.abc import AsyncIterator

import shop  # type: ignore[import-not-found]
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route


@shop.app.task(run_in="process")  # type: ignore[untyped-decorator]
def process_id() -> int:
    return os.getpid()


@contextlib.asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[None]:
    async with shop.app.worker(concurrency=4, lease=2, drain=10):
        yield


async def add(request: Request) -> PlainTextResponse:
    job = await shop.add.aenqueue(int(request.query_params["number"]), 1)
    return PlainTextResponse(str(await job.aresult(timeout=30)))


async def process(_: Request) -> PlainTextResponse:
    return PlainTextResponse(str(await (await process_id.aenqueue()).aresult(timeout=30)))


application = Starlette(routes=[Route("/add", add), Route("/process", process)], lifespan=lifespan)
