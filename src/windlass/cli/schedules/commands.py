"""windlass schedules."""

from typing import Annotated, Any

import msgspec
import typer

from windlass.cli.ask import YesOption, ask
from windlass.cli.complete import schedule_names
from windlass.cli.enqueue import make_job
from windlass.cli.output.advice import Advice
from windlass.cli.output.as_json import print_json
from windlass.cli.output.tables import print_table
from windlass.cli.reach import AppOption, JsonOption, StoreOption, is_server, look, reach
from windlass.cli.schedules.wording import describe, next_run, record, row_of, sentence
from windlass.client.app import App
from windlass.core.jobs.job import NewJob
from windlass.core.schedules.schedule import Schedule
from windlass.errors import InvalidOption, JobNotFound
from windlass.store.open import redact

schedules = typer.Typer(
    help="Schedules of jobs: list, show, add, set, reset, pause, resume, run, remove, prune.",
    no_args_is_help=True,
)

FIRST_STEPS = (
    'Declare one in code, @app.schedule("0 9 * * *") above @app.task, which the next worker writes; '
    "or make one now: windlass schedules add NAME TYPE --cron '0 9 * * *'"
)

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The schedule.", autocompletion=schedule_names)]
Cron = Annotated[
    str | None,
    typer.Option(help="When: five fields from the minute, or six from the second, such as '0 9 * * 1-5'; or @daily."),
]
Every = Annotated[
    str | None, typer.Option(help="Instead of --cron: the interval, such as 5m, from when it is added.")
]
Tz = Annotated[str | None, typer.Option("--tz", help="Time zone of --cron, such as Europe/Berlin; default UTC.")]
CatchUp = Annotated[str | None, typer.Option(help="Which missed ticks run: one (the last; default), all or none.")]
Overlap = Annotated[
    bool | None,
    typer.Option("--overlap/--no-overlap", help="Whether a tick fires while the job of an earlier tick is live."),
]
Jitter = Annotated[str | None, typer.Option(help="Delay each job by a random time up to this, such as 30s.")]
Queue = Annotated[str | None, typer.Option(help="The queue of its jobs; with --app the task's, else `default`.")]
Priority = Annotated[int | None, typer.Option(help="Of its jobs: -32768 to 32767, higher first.")]
Type = Annotated[str, typer.Argument(metavar="TYPE", help="The task's type.")]
Payload = Annotated[str, typer.Argument(help="Its arguments as a JSON object, such as '{\"user_id\": 42}'.")]


@schedules.command("list")
def list_schedules(store: StoreOption = None, app: AppOption = None, as_json: JsonOption = False) -> None:
    """List schedules with their next run, in their own time zone and in that of this machine.

    Shows what an operator set beside what the code declares.
    """
    home = look(store, app)
    found = home.schedules.list()
    if as_json:
        print_json([record(each) for each in found])
        return
    columns = ["schedule", "next run", "here", "last tick", "what"]
    advice = Advice(store, app)
    rows = [[*cells, advice(what)] for *cells, what in map(row_of, found)]
    print_table(columns, rows, empty=f"No schedules in {redact(home.store)}. {advice(FIRST_STEPS)}")
    if missing := sorted(home._declared.schedules.keys() - {each.name for each in found}):
        note = f"{app} declares {', '.join(missing)}, not in the store yet: the next worker or producer writes it"
        typer.echo(f"note: {note}", err=True)


@schedules.command()
def show(name: NameArgument, store: StoreOption = None, app: AppOption = None, as_json: JsonOption = False) -> None:
    """Show all details of a schedule, with its next five runs."""
    home = look(store, app)
    found = home.schedules.get(name)
    if as_json:
        print_json(record(found))
    else:
        describe(found, _last_job(home, found), Advice(store, app))


@schedules.command()
def add(
    name: NameArgument,
    type_: Type,
    payload: Payload = "{}",
    cron: Cron = None,
    every: Every = None,
    tz: Tz = None,
    catch_up: CatchUp = None,
    overlap: Overlap = None,
    jitter: Jitter = None,
    queue: Queue = None,
    priority: Priority = None,
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Add a schedule that enqueues a job of a type, with these arguments."""
    if cron is None and every is None:
        raise InvalidOption("add", "needs its times: --cron '0 9 * * 1-5', or --every 5m")
    home = reach(store, app, make=True)
    job = make_job(home, type_, payload, _given(queue=queue, priority=priority))
    times = _given(cron=cron, every=every, tz=tz, catch_up=catch_up, overlap=overlap, jitter=jitter)
    _tell(home.schedules.add(name, job, **times))
    if app is None and not is_server(home.store):
        typer.echo("note: the type and its arguments were not checked; --app module:object does that", err=True)


@schedules.command("set")
def set_schedule(
    name: NameArgument,
    cron: Cron = None,
    every: Every = None,
    tz: Tz = None,
    catch_up: CatchUp = None,
    overlap: Overlap = None,
    jitter: Jitter = None,
    payload: Annotated[str | None, typer.Option(help="Other arguments of its job, as a JSON object.")] = None,
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Change a schedule; this overrides what the code declares. Options that are not given stay.

    New times restart it; ticks that were due at the old times are dropped. `reset` undoes the change.
    """
    home = reach(store, app)
    times = _given(cron=cron, every=every, tz=tz, catch_up=catch_up, overlap=overlap, jitter=jitter)
    job = None if payload is None else _with_payload(home, home.schedules.get(name).rules.job, payload)
    _tell(home.schedules.set(name, job, **times))


@schedules.command()
def reset(
    name: NameArgument,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[SETTING]...", help="Only these, such as cron or catch-up.")
    ] = None,
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Undo what operators have set: everything, or the named settings."""
    _tell(reach(store, app).schedules.reset(name, *(each.replace("-", "_") for each in names or ())))


@schedules.command()
def pause(name: NameArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Pause a schedule: it enqueues nothing until it is resumed."""
    _tell(reach(store, app).schedules.pause(name))


@schedules.command()
def resume(name: NameArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Resume a schedule at its next tick; ticks during the pause are not made up."""
    _tell(reach(store, app).schedules.resume(name))


@schedules.command("run")
def run_now(name: NameArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Enqueue a schedule's job now, paused or not; its ticks are not affected."""
    handle = reach(store, app).schedules.run(name)
    existing = " (exists already: its last job has not ended, and they may not overlap)"
    typer.echo(f"{handle.id}{existing if handle.existing else ''}")


@schedules.command()
def remove(name: NameArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Remove a schedule; its jobs stay."""
    home = reach(store, app)
    declared = home.schedules.get(name).declared.job is not None
    home.schedules.remove(name)
    typer.echo(f"{name} is removed")
    if declared:
        pause_it = Advice(store, app)(f"windlass schedules pause {name}")
        typer.echo(
            "note: the code declared it; while it does, it comes back with the next process of that code. "
            f"To stop it for good: {pause_it}",
            err=True,
        )


@schedules.command()
def prune(app: AppOption = None, yes: YesOption = False, store: StoreOption = None) -> None:
    """Remove schedules that code declared and the app no longer declares; their jobs stay.

    Schedules that an operator added stay, and those of other apps whose workers are alive.
    """
    if app is None:
        raise InvalidOption("--app", "is needed, such as --app shop:app: the app declares which schedules stay")
    home = reach(store, app)
    names = [each.name for each in home.schedules.undeclared()]
    if not names:
        typer.echo(f"{app} declares every schedule in {redact(home.store)} that came from code.")
        return
    ask(f"remove {', '.join(names)} from {redact(home.store)}", yes)
    for name in names:
        home.schedules.remove(name)
        typer.echo(f"{name} is removed")


def _last_job(home: App, schedule: Schedule) -> str:
    """The last job of a tick, and its status."""
    if schedule.last_job is None:
        return "-"
    try:
        return f"{schedule.last_job} {home.jobs.get(schedule.last_job, fetch=False).status}"
    except JobNotFound:
        return f"{schedule.last_job}, which is not kept any more"


def _given(**options: Any) -> Any:
    return {name: value for name, value in options.items() if value is not None}


def _with_payload(home: App, job: NewJob, payload: str) -> NewJob:
    """The same job with other arguments."""
    return msgspec.structs.replace(job, payload=make_job(home, job.type, payload, {}).payload)


def _tell(schedule: Schedule) -> None:
    typer.echo(f"{schedule.name}: {sentence(schedule)}")
    typer.echo(f"Next run: {next_run(schedule)}")
