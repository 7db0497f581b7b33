"""Handlers that misbehave, copied into a test's folder beside shop.py: each in the kinds in which it makes sense."""

import asyncio
import contextlib
import ctypes
import locale
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from windlass import App, Cancel, Context, Fixed

app = App()
app.queue("hurried", timeout=1)

print("the app is loaded")
_trace = os.open("effects", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
_HERE = os.getcwd()
_kept: list[Any] = []


def trace(ctx: Context, kind: str) -> None:
    job = ctx.job
    line = f"{kind} {job.type} {job.id} {ctx.attempt} {os.getpid()} {time.monotonic_ns()}\n"
    os.write(_trace, line.encode())


def is_open(gate: str) -> bool:
    return Path(_HERE, gate).exists()


def in_three_kinds(name: str, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The same deed in a thread, in a process and on the loop, as `thread.name`, `process.name` and `async.name`."""

    def register(deed: Callable[..., Any]) -> Callable[..., Any]:
        def in_thread(ctx: Context, what: str) -> Any:
            trace(ctx, "start")
            result = deed(what)
            trace(ctx, "end")
            return result

        async def on_loop(ctx: Context, what: str) -> Any:
            return in_thread(ctx, what)

        app.task(type=f"thread.{name}", **options)(in_thread)
        app.task(type=f"process.{name}", run_in="process", **options)(in_thread)
        app.task(type=f"async.{name}", **options)(on_loop)
        return deed

    return register


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("cannot say")

    __repr__ = __str__


def circle() -> BaseException:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first


def deep(number: int = 0) -> int:
    return deep(number + 1) + 1


@in_three_kinds("raise", retry=Fixed(attempts=1))
def raise_(what: str) -> None:
    if what == "RecursionError":
        deep()
    errors: dict[str, Callable[[], BaseException]] = {
        "SystemExit": lambda: SystemExit(0),
        "KeyboardInterrupt": KeyboardInterrupt,
        "CancelledError": asyncio.CancelledError,
        "GeneratorExit": GeneratorExit,
        "MemoryError": MemoryError,
        "TimeoutError": lambda: TimeoutError("my own"),
        "Mute": Mute,
        "circle": circle,
        "BrokenPipeError": BrokenPipeError,
        "ExceptionGroup": lambda: ExceptionGroup("many", [ValueError(str(number)) for number in range(10_000)]),
    }
    raise errors[what]()


@in_three_kinds("return")
def return_(what: str) -> Any:
    loop: list[Any] = []
    loop.append(loop)
    return {"nan": float("nan"), "object": object(), "huge": "x" * 10_000_000, "loop": loop, "lock": _LOCK}[what]


_LOCK = threading.Lock()


@in_three_kinds("die", retry=Fixed(attempts=10))
def die(what: str) -> None:
    print("about to die")
    match what:
        case "exit 0":
            os._exit(0)
        case "exit 3":
            os._exit(3)
        case "SIGKILL":
            os.kill(os.getpid(), signal.SIGKILL)
        case "segfault":
            ctypes.string_at(0)


@in_three_kinds("fork_twice")
def return_twice(what: str) -> int:
    """Forks, and returns in both processes."""
    return 1 if os.fork() else 2


@in_three_kinds("leave_threads")
def leave_threads(what: str) -> int:
    for _ in range(3):
        threading.Thread(target=threading.Event().wait, daemon=what == "daemons").start()
    return threading.active_count()


@in_three_kinds("loop_inside")
def loop_inside(what: str) -> int:
    async def seven() -> int:
        await asyncio.sleep(0)
        return 7

    return asyncio.run(seven())


@in_three_kinds("quick")
def quick(what: str) -> int:
    return os.getpid()


@app.task(run_in="process")
def leave_child(ctx: Context, how: str) -> int:
    """Leaves a child behind that lives as long as it is let; its pid."""
    trace(ctx, "start")
    said, say = os.pipe()
    if os.fork() == 0:
        if how != "plain":
            os.setsid()
        if how == "daemon" and os.fork() != 0:
            os._exit(0)
        os.write(say, str(os.getpid()).encode())
        while True:
            time.sleep(1)
    pid = int(os.read(said, 20))
    Path(f"child-{ctx.job.id}").write_text(str(pid))
    if how == "daemon and die":
        os._exit(0)
    trace(ctx, "end")
    return pid


@app.task(run_in="process", retry=Fixed(attempts=1), timeout=None)
def leave_child_and_wait(ctx: Context, how: str) -> None:
    trace(ctx, "start")
    program = [sys.executable, "-c", "import time; time.sleep(600)"]
    child = subprocess.Popen(program, start_new_session=how == "setsid", env=None if how != "clean" else {})
    Path(f"child-{ctx.job.id}").write_text(str(child.pid))
    while True:
        time.sleep(0.02)
        trace(ctx, "here")


@app.task(run_in="process", retry=Fixed(attempts=1))
def devour(ctx: Context) -> None:
    trace(ctx, "start")
    limit = 1 << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    hoard = []
    while True:
        hoard.append(bytearray(32 << 20))


@app.task(run_in="process", retry=Fixed(attempts=10))
def close_all(ctx: Context) -> None:
    trace(ctx, "start")
    os.closerange(0, 1024)


@app.task
def close_all_here(ctx: Context) -> None:
    trace(ctx, "start")
    os.closerange(3, 1024)


@app.task
def hang_up(ctx: Context) -> None:
    """Closes every socket of its process, and goes on."""
    trace(ctx, "start")
    for number in range(3, 1024):
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.fstat(number).st_mode):
                os.close(number)
    threading.Event().wait()


@app.task(run_in="process")
def change(ctx: Context, what: str) -> int:
    trace(ctx, "start")
    match what:
        case "folder":
            os.chdir("/")
        case "umask":
            os.umask(0o777)
        case "signals":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "locale":
            locale.setlocale(locale.LC_ALL, "C.UTF-8")
            locale.setlocale(locale.LC_NUMERIC, "C")
        case "zone":
            os.environ["TZ"] = "Pacific/Chatham"
            time.tzset()
        case "streams":
            sys.stdout = sys.stderr = None
        case "output":
            os.close(1)
            os.close(2)
    trace(ctx, "end")
    return os.getpid()


@app.task(run_in="process")
def look_around(ctx: Context) -> list[Any]:
    trace(ctx, "start")
    mask = os.umask(0)
    os.umask(mask)
    answer = [
        os.getcwd() == _HERE,
        mask,
        signal.getsignal(signal.SIGTERM) is not signal.SIG_IGN,
        os.environ.get("TZ"),
    ]
    trace(ctx, "end")
    return [*answer, os.getpid()]


@app.task(run_in="process")
def shout(ctx: Context, megabytes: int, ending: str) -> None:
    trace(ctx, "start")
    text = "x" * 1000 + ending
    for _ in range(megabytes * 1000):
        sys.stdout.write(text)
    sys.stderr.write(f"{ending}the end")
    trace(ctx, "end")


@app.task(run_in="process")
def say(ctx: Context, text: str) -> int:
    trace(ctx, "start")
    print(text)
    ctx.log(f"logged {text}")
    ctx.progress(1, 2, text)
    trace(ctx, "end")
    return os.getpid()


@app.task(run_in="process")
def grow(ctx: Context, megabytes: int) -> int:
    trace(ctx, "start")
    _kept.append(b"x" * (megabytes << 20))
    trace(ctx, "end")
    return os.getpid()


@app.task
async def hold_loop(ctx: Context, gate: str) -> str:
    """Never awaits."""
    trace(ctx, "start")
    while not is_open(gate):
        time.sleep(0.02)  # noqa: ASYNC251
        trace(ctx, "here")
    trace(ctx, "end")
    return "opened"


def _wait(ctx: Context, gate: str) -> str:
    """Deaf: it looks at nothing but its gate."""
    trace(ctx, "start")
    while not is_open(gate):
        time.sleep(0.02)
        trace(ctx, "here")
    trace(ctx, "end")
    return "opened"


wait_in_thread = app.task(type="thread.wait", retry=Fixed(base=0.1, jitter=0))(_wait)
wait_in_process = app.task(type="process.wait", run_in="process", retry=Fixed(base=0.1, jitter=0))(_wait)
hurry = app.task(type="hurry", timeout=2, retry=Fixed(attempts=1))(_wait)


@app.task(type="async.wait", retry=Fixed(base=0.1, jitter=0))
async def wait_on_loop(ctx: Context, gate: str) -> str:
    trace(ctx, "start")
    while not is_open(gate):
        await asyncio.sleep(0.02)
        trace(ctx, "here")
    trace(ctx, "end")
    return "opened"


@app.task(retry=Fixed(base=0.1, jitter=0))
async def stubborn(ctx: Context, gate: str) -> str:
    """Swallows every request to end."""
    trace(ctx, "start")
    while not is_open(gate):
        try:
            await asyncio.sleep(0.02)
            trace(ctx, "here")
        except asyncio.CancelledError:
            ctx.log("no")
    trace(ctx, "end")
    return "opened"


@app.task
async def cancel_a_part() -> None:
    """Cancels one of the tasks that its runner needs."""
    (part,) = [each for each in asyncio.all_tasks() if getattr(each.get_coro(), "__qualname__", "") == "Meters.run"]
    part.cancel()


@app.task(run_in="process")
def polite(ctx: Context) -> None:
    """Works until it is asked to stop."""
    trace(ctx, "start")
    ctx.progress(1, 4, "a quarter")
    ctx.log("it begins")
    while not ctx.cancelled:
        time.sleep(0.02)
    trace(ctx, "end")
    raise Cancel("asked to stop")


@app.task
def breed(ctx: Context, left: int) -> None:
    """Enqueues itself."""
    trace(ctx, "start")
    if left:
        breed.enqueue(left=left - 1)
    trace(ctx, "end")


@in_three_kinds("start_and_stop_others", retry=Fixed(attempts=1), timeout=None)
def start_and_stop_others(what: str) -> list[int]:
    """Programs and forks that it starts end at SIGTERM and SIGHUP, though it does not."""
    program = [sys.executable, "-c", "import signal; print(flush=True); signal.pause()"]
    codes = []
    for number in (signal.SIGTERM, signal.SIGHUP):
        child = subprocess.Popen(program, stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        child.send_signal(number)
        codes.append(child.wait(20))
        child.stdout.close()
    if (forked := os.fork()) == 0:
        while True:
            time.sleep(1)
    os.kill(forked, signal.SIGTERM)
    time.sleep(0.5)
    os.kill(forked, signal.SIGKILL)
    codes.append(-os.WTERMSIG(os.waitpid(forked, 0)[1]))
    return codes
