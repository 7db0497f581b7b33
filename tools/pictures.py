"""Takes the pictures of the README: real workers on a small real app, drawn by the code that draws the terminal.

python tools/pictures.py [SECONDS]    writes docs/pictures/top.svg after so many seconds of work (120)
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

from windlass.cli.top.frame import frame
from windlass.cli.top.snapshot import Snapshot, gather

PICTURES = Path(__file__).parent.parent / "docs" / "pictures"
WIDTH, HEIGHT = 110, 28
WORKERS = 2
SHOP = """
import asyncio, random, time

from windlass import App, Fixed

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


@app.task(type="invoice.import", queue="reports", max_attempts=1)
async def invoice(number: int) -> None:
    await asyncio.sleep(random.lognormvariate(-0.5, 0.4))
    if number % 9 == 0:
        raise ValueError(f"invoice {number}: unknown currency 'GBX'")
"""


def main() -> None:
    """Work for a while, then draw."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 120.0
    with tempfile.TemporaryDirectory(prefix="windlass-pictures-") as name:
        os.chdir(name)
        Path("shop.py").write_text(SHOP)
        sys.path.insert(0, name)
        workers = [_worker(name) for _ in range(WORKERS)]
        try:
            snapshot = _work(seconds)
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait()
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / "top.svg").write_text(draw(neutral(snapshot)))


def _worker(folder: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "windlass", "worker", "shop:app", "--concurrency", "12"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _work(seconds: float) -> Snapshot:
    """Enqueue jobs in waves, as the day of a shop goes, and look at the height of one."""
    from shop import app, invoice, resize, sync, welcome  # type: ignore[import-not-found]

    began, number = time.monotonic(), 0
    while (passed := time.monotonic() - began) < seconds:
        tide = 0.6 + 0.4 * math.sin(passed / 9)
        jobs = [welcome.job(number + i) for i in range(round(26 * tide))]
        jobs += [resize.job(number + i) for i in range(round(9 * tide))]
        jobs += [sync.job(number + i) for i in range(random.randrange(5))]
        jobs += [invoice.job(number // 40)] if number % 40 == 0 else []
        jobs += [welcome.using(delay=60).job(number)] if number % 5 == 0 else []
        app.enqueue_many(jobs)
        number += 1
        time.sleep(0.1)
    found = gather(app)
    app.close()
    return found


def neutral(snapshot: Snapshot) -> Snapshot:
    """Without the names of the machine it was taken on."""
    workers = [
        msgspec.structs.replace(worker, host=f"worker-{number}", pid=4000 + 7 * number)
        for number, worker in enumerate(snapshot.workers, 1)
    ]
    return msgspec.structs.replace(snapshot, workers=workers)


def draw(snapshot: Snapshot) -> str:
    """The frame as a picture, which loads nothing from elsewhere."""
    out = Console(record=True, width=WIDTH, height=HEIGHT, file=io.StringIO(), force_terminal=True)
    out.print(frame(snapshot, WIDTH, HEIGHT, Text("q quits", "dim")))
    svg = out.export_svg(title="windlass top", theme=MONOKAI, unique_id="windlass-top")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    main()
