"""The user's app before a deploy."""

import asyncio

from shop import trace  # type: ignore[import-not-found]

from windlass import App, Context

app = App()


@app.task
async def greet(ctx: Context, user: int) -> str:
    trace(ctx, "start")
    await asyncio.sleep(0.01)
    trace(ctx, "end")
    return f"hello {user}"


@app.task
def bill(ctx: Context, order: int) -> str:
    trace(ctx, "start")
    trace(ctx, "end")
    return f"{order} EUR"
