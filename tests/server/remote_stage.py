"""A server with a short lease, and Python workers that reach only it, over a lossy line."""

from collections.abc import Callable
from pathlib import Path

from tests.server.test_serve import Served
from tests.support.processes import Process, until
from windlass import App
from windlass.core.jobs.job import Job
from windlass.testing.workers.proxy import LossyProxy

LEASE = "2s"
SHOP = """
import os, pathlib, signal, time
import windlass
from windlass import Cancel, Context, Dead, Retry, Snooze

app = windlass.App("postgresql://nowhere.invalid/jobs")  # no process here may reach it


@app.on_start
def begin(state):
    state.greeting = "hello"


@app.middleware
def surround(ctx):
    ctx.log("around")
    yield


@app.task
async def on_loop(ctx: Context, n: int):
    await ctx.progress(1, 2, "half")
    await ctx.log("begun")
    child = await ctx.aenqueue(child_task, n)
    return [n, ctx.state.greeting, child.id]


@app.task
def in_thread(ctx: Context, n: int):
    return ctx.enqueue(child_task, n).id


@app.task(run_in="process")
def in_process(ctx: Context, n: int):
    ctx.log("in a process")
    return [os.getpid(), ctx.enqueue(child_task, n).id]


@app.task
def child_task(n: int):
    return n


@app.task
def fail():
    raise ValueError("not this one")


@app.task(retry=windlass.Fixed(base=0.05))
def twice(ctx: Context):
    if ctx.attempt == 1:
        raise Retry(after=0.01)
    return ctx.attempt


@app.task
def nap(ctx: Context):
    if ctx.job.snoozes == 0:
        raise Snooze(0.01)
    return ctx.job.snoozes


@app.task
def give_up():
    raise Dead("no use")


@app.task
def not_needed():
    raise Cancel("not needed")


@app.task(run_in="process")
def too_long():
    time.sleep(600)


@app.task
async def hang():
    time.sleep(600)


@app.task
def queue_decides():
    raise ValueError("again")


@app.task
async def wait(ctx: Context, file: str):
    await ctx.log("begun")
    while not pathlib.Path(file).exists():
        await ctx.sleep(0.02)
    return ctx.attempt


@app.task(queue="images")
async def picture(ctx: Context, file: str):
    while not pathlib.Path(file).exists():
        await ctx.sleep(0.02)


@app.task(run_in="process")
def die_alone():
    os.kill(os.getpid(), signal.SIGKILL)
"""


class Remote:
    """A server with a short lease, and workers that know only its address."""

    def __init__(self, folder: Path, store: str) -> None:
        self.folder = folder
        (folder / "shop.py").write_text(SHOP)
        self.served = Served(folder, store)
        self.server = self.served.start("--worker-lease", LEASE, "--unready", "0s")
        self.app: App = self.served.app
        self.token = self.app.tokens.create("workers", ["work", "enqueue"])
        self.proxy = LossyProxy("127.0.0.1", self.served.port)
        self.proxy.__enter__()

    def worker(self, *options: str, token: str | None = None) -> Process:
        """A worker that goes through the lossy line."""
        environment = {"WINDLASS_TOKEN": token or self.token.text, "WINDLASS_STORE": "postgresql://nowhere.invalid/x"}
        server = f"http://127.0.0.1:{self.proxy.port}"
        words = ("-m", "windlass", "worker", "shop:app", "--server", server, *options)
        return self.served.processes.start("worker", *words, environment=environment)

    def restart_server(self, *, after: Callable[[], None]) -> None:
        self.server.kill()
        self.served.client.close()
        after()
        self.server = self.served.start("--worker-lease", LEASE, "--unready", "0s")

    def enqueue(self, type_: str, payload: dict[str, object] | None = None, **options: object) -> str:
        return self.app.enqueue(type_, payload or {}, **options).id  # type: ignore[arg-type]

    def job(self, id_: str) -> Job:
        return self.app.jobs.get(id_)

    def ends(self, id_: str) -> Job:
        """The job, when it is finished."""
        until(lambda: self.job(id_).finished, f"job {id_} is finished")
        return self.job(id_)

    def runs(self, id_: str) -> None:
        until(lambda: self.job(id_).logs, f"the handler of {id_} has begun")

    def end(self) -> None:
        self.proxy.__exit__(None, None, None)
        self.served.end()
