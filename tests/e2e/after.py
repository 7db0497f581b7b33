"""The user's app after a deploy: a new task, and a new parameter in two ways."""

import asyncio

from shop import trace  # type: ignore[import-not-found]

from windlass import App, Context

app = App()


@app.task
async def greet(ctx: Context, user: int, lang: str = "en") -> str:
    """The same type: the parameter is used when no old worker is left."""
    trace(ctx, "start")
    if lang != "en":
        trace(ctx, "here")
    await asyncio.sleep(0.01)
    trace(ctx, "end")
    return f"{lang} {user}"


@app.task(type="bill.2", aliases=["bill"])
def bill(ctx: Context, order: int, currency: str = "EUR") -> str:
    """A new type: the parameter is used at once, because old workers do not claim it."""
    trace(ctx, "start")
    trace(ctx, "end")
    return f"{order} {currency}"


@app.task
async def refund(ctx: Context, order: int) -> str:
    trace(ctx, "start")
    trace(ctx, "end")
    return f"refunded {order}"
