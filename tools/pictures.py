"""Takes the pictures of the README: real workers on a small real app, the terminal drawn by its own code, the
dashboard in Chromium.

python -m tools.pictures [MINUTES]    writes docs/pictures/top.svg and dashboard-*.png after MINUTES of work (20)
"""

import io
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text
from tools.dashboard_pictures import take_dashboard

from windlass.cli.top.frame import frame
from windlass.cli.top.snapshot import Snapshot, gather

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
WIDTH, HEIGHT = 110, 28
WORKERS = 2
TICK = 0.4
SHOP = """
import asyncio, random, time

from windlass import App, Context, Fixed

app = App("sqlite:///jobs.db")


@app.task(type="mail.welcome", queue="mail")
async def welcome(user: int) -> None:
    await asyncio.sleep(random.lognormvariate(-4, 0.7))


@app.task(type="image.resize", queue="images")
def resize(image: int) -> None:
    time.sleep(random.lognormvariate(-2.3, 0.5))


@app.task(type="crm.sync", retry=Fixed(attempts=3, base=5))
async def sync(customer: int) -> None:
    await asyncio.sleep(random.lognormvariate(-3, 0.5))
    if random.random() < 0.04:
        raise ConnectionError(f"the CRM did not answer for customer {customer}")


@app.task(type="report.build", queue="reports")
async def report(ctx: Context, month: str, *, currency: str = "EUR", lines: list[int] = []) -> dict[str, object]:
    for part in range(4):
        await asyncio.sleep(0.4)
        await ctx.log(f"part {part + 1} of 4: {180 + 37 * part} rows")
        await ctx.progress(part + 1, 4)
    return {"month": month, "rows": 942, "total": 9007199254740993, "currency": currency}


app.schedule("monthly-report", report.job("2026-10"), cron="0 6 1 * *", tz="Europe/Berlin")
app.queue("mail", max_concurrency=24)


@app.task(type="invoice.import", queue="reports", max_attempts=1)
async def invoice(number: int) -> None:
    await asyncio.sleep(random.lognormvariate(-0.5, 0.4))
    if number % 9 == 0:
        raise ValueError(f"invoice {number}: unknown currency 'GBX'")
"""


def main() -> None:
    """Work for a while, then draw."""
    seconds = 60 * (float(sys.argv[1]) if len(sys.argv) > 1 else 20.0)
    with tempfile.TemporaryDirectory(prefix="windlass-pictures-") as name:
        os.chdir(name)
        Path("shop.py").write_text(SHOP)
        sys.path.insert(0, name)
        workers = [_worker(name) for _ in range(WORKERS)]
        try:
            snapshot = _work(seconds)
            PICTURES.mkdir(exist_ok=True)
            take_dashboard(Path(name), PICTURES)
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait()
    (PICTURES / "top.svg").write_text(draw(neutral(snapshot)))


def _worker(folder: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "windlass", "worker", "shop:app", "--concurrency", "12"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _work(seconds: float) -> Snapshot:
    """Enqueue jobs in waves, as the day of a shop goes, and look at the height of one."""
    from shop import app, invoice, resize, sync, welcome  # type: ignore[import-not-found]

    began, number = time.monotonic(), 0
    while (passed := time.monotonic() - began) < seconds:
        tide = 0.6 + 0.4 * math.sin(passed / 90)
        jobs = [welcome.job(number + i) for i in range(round(26 * tide))]
        jobs += [resize.job(number + i) for i in range(round(9 * tide))]
        jobs += [sync.job(number + i) for i in range(random.randrange(5))]
        jobs += [invoice.job(number // 40)] if number % 40 == 0 else []
        jobs += [welcome.using(delay=60).job(number)] if number % 5 == 0 else []
        app.enqueue_many(jobs)
        number += 1
        time.sleep(TICK)
    found = gather(app)
    app.close()
    return found


def neutral(snapshot: Snapshot) -> Snapshot:
    """Without the names of the machine it was taken on."""
    workers = [
        msgspec.structs.replace(worker, host=f"worker-{number}", pid=4000 + 7 * number)
        for number, worker in enumerate(snapshot.workers, 1)
    ]
    return msgspec.structs.replace(snapshot, workers=workers, store="sqlite:///jobs.db")


def draw(snapshot: Snapshot) -> str:
    """The frame as a picture, which loads nothing from elsewhere."""
    out = Console(record=True, width=WIDTH, height=HEIGHT, file=io.StringIO(), force_terminal=True)
    out.print(frame(snapshot, WIDTH, HEIGHT, Text("q quits", "dim")))
    svg = out.export_svg(title="windlass top", theme=MONOKAI, unique_id="windlass-top")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    main()
