"""windlass.testing.context: a handler that takes a Context is called as a plain function."""

import asyncio

import pytest

from windlass import App, Cancel, Context, UseAsync
from windlass.testing import assert_enqueued, context

app = App.testing()


@app.task
def child(number: int) -> int:
    return number


@app.task(queue="slow")
def render(ctx: Context, report_id: int) -> str:
    ctx.progress(1, 2, "half")
    ctx.log("rendering")
    return f"{report_id} {ctx.job.queue} {ctx.attempt}"


@app.task
async def crawl(ctx: Context, url: str) -> str:
    await ctx.log(url)
    await ctx.sleep(0)
    return (await ctx.aenqueue(child, 2)).id


def test_a_plain_handler_is_called_with_a_context() -> None:
    ctx = context()
    assert render(ctx, 7) == "7 default 1"
    assert [(each.done, each.total, each.note) for each in ctx.reports] == [(1, 2, "half")]
    assert ctx.lines == ["rendering"]


def test_the_job_and_the_attempt_can_be_given() -> None:
    ctx = context(app, render.using(tenant="acme", tags=["a"]).job(7), attempt=3)
    assert render(ctx, 7) == "7 slow 3"
    job = ctx.job
    assert (job.type, job.payload, job.tenant, job.tags, job.failures) == (
        "render",
        {"report_id": 7},
        "acme",
        ("a",),
        2,
    )


async def test_an_async_handler_is_awaited_and_its_children_go_to_the_app() -> None:
    ctx = context(app)
    id_ = await crawl(ctx, "https://example.org")
    (job,) = assert_enqueued(app, child, 2)
    assert (job.id, job.parent, ctx.lines) == (id_, ctx.job.id, ["https://example.org"])
    with pytest.raises(UseAsync):
        ctx.enqueue(child, 3)


def test_a_plain_handler_enqueues_to_the_queue_that_it_names() -> None:
    other = App.testing()
    ctx = context(other)
    ctx.enqueue(child.job(5))
    assert [(job.type, job.parent) for job in other.jobs.list()] == [(child.type, ctx.job.id)]
    other.close()


def test_the_state_is_that_of_the_app() -> None:
    app.state.pool = "a pool"
    assert context(app).state.pool == "a pool"
    assert not hasattr(context().state, "pool")


@pytest.mark.parametrize("is_async", [False, True])
def test_a_handler_can_be_cancelled(is_async: bool) -> None:
    ctx = context()
    ctx.cancel()
    assert ctx.cancelled

    async def sleep() -> None:
        await ctx.sleep(3600)

    with pytest.raises(Cancel):
        asyncio.run(sleep()) if is_async else ctx.sleep(3600)
