"""The demo's tasks: ordinary handlers, some of which misbehave on purpose.

Each records its start outside the store, so that the recount does not rely on the store.
"""

import asyncio
import os
import time
from pathlib import Path

from windlass.client.app import App
from windlass.client.tasks.context import Context
from windlass.core.control import Snooze
from windlass.core.jobs.retry import Fixed

EFFECTS = "WINDLASS_DEMO_EFFECTS"
FIXED = "WINDLASS_DEMO_FIXED"

app = App()
app.queue("reports", max_attempts=5)


@app.task(type="mail.welcome")
async def welcome(ctx: Context, user: int) -> str:
    """An async handler that waits for a remote server."""
    started(ctx)
    await asyncio.sleep(0.03 + user % 5 * 0.01)
    return f"sent to user {user}"


@app.task(type="image.thumbnail")
def thumbnail(ctx: Context, image: int) -> str:
    """A plain function, in a thread."""
    started(ctx)
    time.sleep(0.02 + image % 7 * 0.01)
    return f"{image}.png"


@app.task(type="crm.sync", retry=Fixed(attempts=5, base=0.4))
def sync(ctx: Context, customer: int) -> str:
    """Fails now and then, as remote APIs do; retried after 0.4 s."""
    started(ctx)
    if ctx.attempt <= customer % 3:
        raise ConnectionError(f"the CRM did not answer (try {ctx.attempt})")
    return "in sync"


@app.task(type="report.build", queue="reports")
async def report(ctx: Context, pages: int) -> str:
    """A long handler that reports progress; its first attempt snoozes."""
    started(ctx)
    if ctx.job.snoozes == 0:
        raise Snooze(0.5)
    for page in range(pages):
        await ctx.progress(page + 1, pages, "building")
        await asyncio.sleep(0.1)
    return f"{pages} pages"


@app.task(type="invoice.import", retry=Fixed(attempts=2, base=0.2))
def import_invoice(ctx: Context, invoice: int) -> str:
    """Fails until the bug is fixed: the job is dead, and is retried."""
    started(ctx)
    if not Path(os.environ[FIXED]).exists():
        raise ValueError(f"invoice {invoice}: unknown currency 'GBX'")
    return "imported"


def started(ctx: Context) -> None:
    """One line per start, in one write: whole lines, even with several writers."""
    line = f"{ctx.job.id} {ctx.attempt} {os.getpid()}\n".encode()
    descriptor = os.open(os.environ[EFFECTS], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)
