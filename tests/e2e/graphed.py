"""The user's app of the tests of graphs: a runner of it kills itself once, in a node."""

import os
import signal
from pathlib import Path

from windlass import App, Dead

app = App()


def note(line: str) -> None:
    """One write on a file opened for appending: lines of several processes never mix."""
    with Path("notes").open("a") as file:
        file.write(f"{line}\n")


@app.task(queue="money")
def pay(amount: int) -> int:
    if amount < 0:
        raise Dead("nothing to pay")
    return amount


@app.task(queue="goods")
def items(paid: int) -> list[int]:
    return list(range(paid))


@app.task(queue="goods")
def pick(item: int) -> int:
    return item * item


@app.task
def ship(parts: list[int]) -> int:
    if os.environ.get("KILL_AT") == "ship" and not Path("killed").exists():
        Path("killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    note(f"ship {sum(parts)}")
    return sum(parts)


@app.task(queue="money")
def refund() -> None:
    note("refund")


@app.task
def clean() -> None:
    note("clean")
