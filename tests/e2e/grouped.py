"""The user's app of the tests of groups; a runner of it kills itself once where KILL_AT says."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from windlass import App, Exponential, Results, group
from windlass.client.groups import group as group_module
from windlass.client.groups import watch
from windlass.client.groups.ends import GroupEnds
from windlass.client.groups.members import Walk

app = App()


def note(line: str) -> None:
    """One write on a file opened for appending: lines of several processes never mix."""
    with Path("notes").open("a") as file:
        file.write(f"{line}\n")


@app.task
def square(number: int) -> int:
    return number * number


@app.task
async def total(parts: Results[int]) -> int:
    found = sum([each async for each in parts])
    note(f"total {found}")
    return found


@app.task
def clean() -> None:
    note("clean")


@app.task
def slow(number: int) -> int:
    """A negative number waits until the test has cancelled the group."""
    while number < 0 and not Path("cancelled").exists():
        time.sleep(0.01)
    time.sleep(0.001)
    return number


@app.task
def alert(parts: Results[int]) -> None:
    note("alert")


@app.task(retry=Exponential(attempts=2, base=0.1))
def crash(how: str) -> int:
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    raise SystemExit(3)


def die_once() -> None:
    """Killed, as by the kernel; only the first process that comes here."""
    try:
        os.close(os.open("killed", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def dying(method: Callable[..., Any], *, before: bool) -> Callable[..., Any]:
    async def run(*args: Any) -> Any:
        if before:
            die_once()
        found = await method(*args)
        if not before:
            die_once()
        return found

    return run


match os.environ.get("KILL_AT"):
    case "before the wake":
        GroupEnds._wake = dying(GroupEnds._wake, before=True)  # type: ignore[method-assign]
    case "after the wake":
        GroupEnds._wake = dying(GroupEnds._wake, before=False)  # type: ignore[method-assign]
    case "before the look":
        Walk.run = dying(Walk.run, before=True)  # type: ignore[method-assign]
    case "after the look":
        watch.Watch._judge = dying(watch.Watch._judge, before=False)  # type: ignore[method-assign]


def numbers(count: int, killed_at: int) -> Iterator[int]:
    """The producer is killed once, as by the kernel."""
    for number in range(count):
        if number == killed_at:
            die_once()
        yield number


if __name__ == "__main__":
    produced = int(sys.argv[1])
    group_module.PORTION = 100
    group((square.job(each) for each in numbers(produced, int(sys.argv[2]))), then=total, id="import-7").enqueue()
    app.close()
