"""The examples of the public face, as a type checker sees them; nothing here is run.

`assert_type` says what is inferred. A line with `type: ignore` must be an error: the checker reports an ignore that
is not needed.
"""

from collections.abc import Awaitable, Callable, Coroutine, Generator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, assert_type

from windlass import (
    PREVIOUS,
    App,
    Backoff,
    ByError,
    Chain,
    ChainHandle,
    Context,
    ContextTask,
    Counts,
    Exponential,
    Handle,
    Job,
    Links,
    NewJob,
    Page,
    Queue,
    Results,
    Schedule,
    State,
    Status,
    Steps,
    Task,
    TaskJob,
    TaskSet,
    WorkerInfo,
    chain,
    current_context,
    current_job,
)
from windlass.testing import context

app = App("sqlite:///jobs.db")


@app.task
async def welcome(user_id: int, *, lang: str = "en") -> str:
    return f"{lang} {user_id}"


@app.task(type="img.resize", queue="images", retry=Exponential(attempts=5, base=60, cap=3600), dead_on=(ValueError,))
def resize(album: str, path: str, width: int) -> list[str]:
    return [album, path] * width


@app.task
def render(ctx: Context, report_id: int) -> None:
    ctx.progress(report_id, 2)


@app.task(queue="slow")
async def crawl(ctx: Context, url: str, depth: int = 1) -> dict[str, int]:
    await ctx.progress(depth)
    return {url: depth}


async def a_call_runs_the_plain_function() -> None:
    assert_type(resize("a", "b", 3), list[str])
    assert_type(welcome(42), Awaitable[str])
    assert_type(await welcome(42, lang="de"), str)


async def enqueue_keeps_the_parameters() -> None:
    assert_type(welcome.enqueue(42, lang="de"), Handle[str])
    assert_type(await welcome.aenqueue(42), Handle[str])
    assert_type(resize.enqueue("a", path="b", width=3), Handle[list[str]])
    assert_type(resize.job("a", "b", 3), TaskJob[list[str]])
    welcome.enqueue("42")  # type: ignore[arg-type]
    await welcome.aenqueue(42, "de")  # type: ignore[call-arg]
    await welcome.aenqueue(42, language="de")  # type: ignore[call-arg]
    resize.enqueue("a", "b")  # type: ignore[call-arg]
    resize.job("a", "b", "3")  # type: ignore[arg-type]
    resize("a", "b", "3")  # type: ignore[arg-type]


async def the_context_is_not_an_argument() -> None:
    assert_type(render.enqueue(7), Handle[None])
    assert_type(render.enqueue(report_id=7), Handle[None])
    assert_type(await crawl.aenqueue("https://example.org", depth=2), Handle[dict[str, int]])
    render.enqueue(None, 7)  # type: ignore[call-arg, arg-type]
    render.enqueue()  # type: ignore[call-arg]
    crawl.job(7)  # type: ignore[arg-type]


async def a_plain_call_is_given_a_context(ctx: Context) -> None:
    takes_its_context: ContextTask[[int], None, None] = render
    takes_its_context(ctx, 7)
    assert_type(await crawl(context(), "https://example.org", depth=2), dict[str, int])
    render(ctx, 7)
    render(context(app), report_id=7)
    render.using(delay=1)(ctx, 7)
    render(7)  # type: ignore[call-arg, arg-type]
    render(ctx, "7")  # type: ignore[arg-type]
    welcome(ctx, 7)  # type: ignore[call-arg, arg-type]


async def a_result_has_the_type_that_the_function_returns() -> None:
    assert_type(welcome.enqueue(1).result(timeout=10), str)
    assert_type(await welcome.enqueue(1).aresult(), str)
    assert_type(resize.enqueue("a", "b", 1).result(), list[str])
    handle = crawl.enqueue("x")
    assert_type(handle.id, str)
    assert_type(handle.existing, bool)
    handle.result(timeout="5m")
    handle.result(timeout=[5])  # type: ignore[arg-type]


async def a_handle_is_taken_wherever_an_id_is(handle: Handle[str], job: Job) -> None:
    assert_type(handle.status, Status)
    assert_type(await handle.astatus(), Status)
    assert_type(handle.cancel("not wanted"), Job)
    assert_type(await handle.ajob(), Job)
    assert_type(app.jobs.get(handle), Job)
    assert_type(await app.jobs.aretry(job), Job)
    welcome.using(parent=handle, id=job).enqueue(1)
    app.jobs.get(welcome)  # type: ignore[arg-type]


def options_are_checked() -> None:
    task = welcome.using(
        delay=timedelta(minutes=1),
        priority=5,
        idempotency_key="welcome:42",
        tenant="acme",
        queue="mail",
        tags=["a"],
        meta={"asked by": "me"},
        max_attempts=5,
        retry=Steps(1, "5s", timedelta(minutes=1)),
        timeout="5m",
        expires="1h",
    )
    assert_type(task.enqueue(42), Handle[str])
    assert_type(welcome.using(delay=1.5).using(run_at=datetime.now(UTC)).job(1), TaskJob[str])
    welcome.using(delay=60).enqueue("42")  # type: ignore[arg-type]
    welcome.using(priorty=5)  # type: ignore[call-arg]
    welcome.using(priority="high")  # type: ignore[arg-type]
    welcome.using(run_at=60)  # type: ignore[arg-type]
    app.task(tpye="x")  # type: ignore[call-overload]
    app.queue("images", max_attempt=3)  # type: ignore[call-arg]


async def limits_and_keys_are_typed() -> None:
    app.queue("images", max_concurrency=8, rate_limit="10/s burst 50", fair=True, retention={"completed": "7d"})
    app.queue("more", weights={"acme": 2}, ageing=timedelta(minutes=10), timeout="none")
    app.queue("bad", fair="yes")  # type: ignore[arg-type]
    assert_type(app.queues.set("images", max_concurrency="none", rate_limit="none"), Queue)
    assert_type(await app.queues.aset("images", weights={"acme": 0.5}), Queue)
    assert_type(app.queues.reset("images", "weights"), Queue)
    assert_type(app.queues.purge("images"), int)
    app.queues.set("images", max_concurrency="many")  # type: ignore[arg-type]
    app.queues.set("images", max_concurency=1)  # type: ignore[call-arg]
    keyed = app.task(concurrency_key="{n}", key_limit=2, key_order="strict", key_rate="10/s", rate_cost=2)

    def keyed_by(n: int) -> int:
        return n

    assert_type(keyed(keyed_by).using(concurrency_key="k", key_order="any").job(1), TaskJob[int])
    app.task(key_order="fifo")  # type: ignore[call-overload]
    welcome.using(key_limit="2")  # type: ignore[arg-type]


async def many_at_once() -> None:
    assert_type(app.enqueue_many([welcome.job(1), welcome.job(2)]), list[Handle[str]])
    assert_type(app.enqueue_many(welcome.job(number) for number in range(3)), list[Handle[str]])
    assert_type(await app.aenqueue_many([resize.job("a", "b", 2)]), list[Handle[list[str]]])
    assert_type(app.enqueue_many([welcome.job(1), render.job(2)])[0].result(), str | None)
    plain: list[NewJob] = [welcome.job(1), resize.job("a", "b", 2)]
    assert_type(app.enqueue_many(plain), list[Handle[Any]])
    app.enqueue_many([welcome])  # type: ignore[arg-type]


async def a_job_can_enqueue_itself() -> None:
    assert_type(welcome.job(1).enqueue(), Handle[str])
    assert_type(await resize.using(delay="5m").job("a", "b", 1).aenqueue(), Handle[list[str]])


async def by_name() -> None:
    assert_type(app.enqueue("mail.welcome", {"user_id": 42}, delay="5m", queue="mail"), Handle[Any])
    assert_type(await app.aenqueue(welcome, {"user_id": 42}), Handle[Any])
    assert_type(app.tasks["welcome"].type, str)
    app.enqueue("mail.welcome", 42)  # type: ignore[arg-type]
    app.enqueue("mail.welcome", {}, dealy=1)  # type: ignore[call-arg]


async def a_chain_has_the_type_of_its_last_link() -> None:
    assert_type(chain(welcome.job(1), resize.using(priority=1)), Chain[list[str]])
    assert_type(
        chain(welcome, render, welcome.job(PREVIOUS, lang="de"), crawl).enqueue(), ChainHandle[dict[str, int]]
    )
    assert_type(await chain(welcome.job(1), crawl).aenqueue(), ChainHandle[dict[str, int]])
    assert_type(chain(welcome.job(1), crawl).enqueue().result(timeout=1), dict[str, int])
    assert_type(chain(welcome.job(1), resize.job("a", PREVIOUS, 2)), Chain[list[str]])
    assert_type(chain(render, crawl, crawl, crawl, crawl, crawl, crawl, welcome.job(PREVIOUS)), Chain[str])
    assert_type(chain(welcome.job(1)).enqueue().result(), str)
    assert_type(chain(*[welcome.job(1)]), Chain[Any])
    chain(welcome.job(1), 5)  # type: ignore[call-overload]
    resize.job("a", PREVIOUS)  # type: ignore[call-arg]


@app.schedule("0 9 * * 1-5", tz="Europe/Berlin", catch_up="one", overlap=False)
@app.task
def report() -> int:
    return 1


@app.schedule(every=timedelta(minutes=5), jitter="30s", name="pulse")
@app.task(queue="slow")
async def pulse(ctx: Context) -> datetime | None:
    assert_type(ctx.job.schedule, str | None)
    return ctx.job.tick


async def a_schedule_leaves_the_task_as_it_is() -> None:
    assert_type(report, Task[[], int, int])
    assert_type(report(), int)
    assert_type(report.enqueue(), Handle[int])
    assert_type(pulse.enqueue(), Handle[datetime | None])
    app.schedule("daily", welcome.job(42), cron="0 9 * * *")
    app.schedule("often", resize.job("a", "b", 3), every=300)
    app.schedule("daily", welcome, cron="0 9 * * *")  # type: ignore[call-overload]
    app.schedule("0 9 * * *", catch_up="some")  # type: ignore[call-overload]
    app.schedule("0 9 * * *", timezone="UTC")  # type: ignore[call-overload]
    app.schedule("0 9 * * *")(len)  # type: ignore[type-var]


async def schedules_have_typed_verbs() -> None:
    assert_type(app.schedules.add("daily", welcome.job(1), cron="@daily"), Schedule)
    assert_type(await app.schedules.aset("daily", every="5m"), Schedule)
    assert_type(app.schedules.reset("daily", "every"), Schedule)
    assert_type(app.schedules.pause("daily"), Schedule)
    assert_type(await app.schedules.aresume("daily"), Schedule)
    assert_type(app.schedules.run("daily"), Handle[Any])
    assert_type(app.schedules.get("daily").next_at, datetime | None)
    assert_type(await app.schedules.alist(), list[Schedule])
    app.schedules.set("daily", crn="@daily")  # type: ignore[call-arg]
    app.schedules.add("daily", welcome.job(1), overlap="no")  # type: ignore[arg-type]


async def every_verb_has_two_forms() -> None:
    assert_type(app.jobs.get("id"), Job)
    look: Callable[[str], Coroutine[Any, Any, Job]] = app.jobs.aget
    assert_type(await look("id"), Job)
    assert_type(await app.jobs.aget("id"), Job)
    assert_type(app.jobs.list(status="dead", limit=5), Page[Job])
    assert_type((await app.jobs.alist()).next_cursor, str | None)
    assert_type([job.id for job in app.jobs.list(type=welcome)], list[str])
    assert_type(app.jobs.list()[0], Job)
    assert_type(list(app.jobs.iter(queue="mail")), list[Job])
    assert_type([job async for job in app.jobs.aiter(tag="x")], list[Job])
    assert_type(app.jobs.count(status=["dead", "failed"]), int)
    assert_type(app.jobs.cancel_all(all=True), int)
    app.jobs.iter(stauts="dead")  # type: ignore[call-arg]
    assert_type(app.jobs.cancel("id"), Job)
    assert_type(app.jobs.retry("id"), Job)
    assert_type(await app.jobs.alinks("id", limit=5), Links)
    assert_type(app.jobs.retry_all(status="dead"), int)
    assert_type(app.queues.get("mail"), Queue)
    assert_type(app.queues.list(), list[Queue])
    assert_type(app.workers.list(), list[WorkerInfo])
    assert_type(app.stats.counts(), Counts)
    assert_type(app.stats.counts()["mail"]["pending"], int)
    assert_type([job.id for job in app.jobs.links("id")], list[str])
    app.jobs.get(7)  # type: ignore[arg-type]
    app.jobs.list(stauts="dead")  # type: ignore[call-arg]
    print(app.jobs.get("id").statuss)  # type: ignore[attr-defined]


def a_task_can_be_handed_on() -> None:
    def twice(task: Task[[int], Any, str], enqueue_jobs: Callable[[int], Handle[str]]) -> Handle[str]:
        task.enqueue(1)
        return enqueue_jobs(2)

    @app.task(type="short")
    def short(number: int) -> str:
        return str(number)

    twice(short, short.enqueue)
    twice(render, short.enqueue)  # type: ignore[arg-type]


tasks = TaskSet(prefix="mail.")


@tasks.task
def send(ctx: Context, to: str) -> int:
    return len(to)


@tasks.task(queue="mail", aliases=["post"])
async def asend(to: str) -> int:
    return len(to)


@tasks.schedule("@daily")
@tasks.task
def digest() -> str:
    return "sent"


def a_task_set_keeps_signatures_too() -> None:
    app.include(tasks)
    assert_type(send.enqueue("you"), Handle[int])
    assert_type(digest.enqueue(), Handle[str])
    tasks.schedule("hourly", send.job("me"), every="1h")
    assert_type(asend.enqueue("you"), Handle[int])
    send.enqueue(7)  # type: ignore[arg-type]
    tasks.task(tpye="x")  # type: ignore[call-overload]
    app.include(app)  # type: ignore[arg-type]


def hooks_stay_what_they_are() -> None:
    @app.on_start
    async def start(state: State) -> None:
        state.pool = 1

    @app.on_dead
    def alert(job: Job, state: State) -> str:
        return f"{job.id} {state.pool}"

    @app.middleware
    def steps(ctx: Context) -> Generator[None, Any, None]:
        yield

    @app.middleware(skip_others=True)
    async def around(ctx: Context, call_next: Callable[[], Awaitable[Any]]) -> Any:
        return await call_next()

    assert_type(alert(current_job(), app.state), str)
    assert_type(current_context(), Context)
    app.middleware(skip_other=True)  # type: ignore[call-overload]


async def the_context_enqueues_children(ctx: Context) -> None:
    assert_type(ctx.enqueue(welcome, 1), Handle[str])
    assert_type(await ctx.aenqueue(render, 1), Handle[None])
    assert_type(ctx.enqueue(resize.job("a", "b", 1)), Handle[Any])
    assert_type(await ctx.aenqueue(resize.job("a", "b", 1)), Handle[Any])
    ctx.enqueue(welcome, "1")  # type: ignore[call-overload]
    await ctx.aenqueue(welcome, "1")  # type: ignore[call-overload]
    await ctx.enqueue(welcome, 1)  # type: ignore[misc]
    ctx.aenqueue(welcome, 1)  # type: ignore[unused-coroutine]
    await ctx.sleep(timedelta(seconds=1))
    assert_type(ctx.state, State)
    await ctx.sleep("1m")
    ctx.sleep([1])  # type: ignore[arg-type]


class Services(State):
    limit: int


@app.on_start
def fill(state: Services) -> None:
    state.limit = 3


@app.task
def bounded(ctx: Context[Services], number: int) -> int:
    assert_type(ctx.state, Services)
    assert_type(ctx.state.limit, int)
    return min(number, ctx.state.limit)


class Fibonacci:
    """A policy of the program."""

    attempts = 5

    def seconds(self, failures: int, random: Random) -> float:
        return failures * 1.5


def policies_and_state_are_typed(own: Backoff) -> None:
    assert_type(bounded.enqueue(5).result(timeout="10s"), int)
    app.task(retry=Fibonacci())
    app.task(retry=ByError({OSError: Steps(1, 5)}, otherwise=own))
    assert_type(Exponential(base="1m", cap=timedelta(hours=1)).base, float)
    app.task(retry=5)  # type: ignore[call-overload]
    welcome.using(retry=Fibonacci())  # type: ignore[arg-type]


def a_node_has_the_type_of_its_result() -> None:
    with app.flow("order") as flow:
        paths = flow.add(resize.job("a", "b", 3))
        flow.add(welcome.job(paths.result), after=[paths])  # type: ignore[arg-type]
        flow.add(welcome.job(1), when="failed")  # type: ignore[arg-type]
        every = flow.map(send, over=paths.result)
        assert_type((every.result, every.results), tuple[list[int], Results[int]])
