"""windlass dead: dead letters."""

from typing import Annotated

import typer

from windlass.cli.ask import YesOption, ask
from windlass.cli.jobs.act import PayloadOption, check_one, retry_each
from windlass.cli.jobs.filters import LimitOption, QueueOption, TypeOption
from windlass.cli.jobs.show import what_of
from windlass.cli.output.advice import Advice
from windlass.cli.output.as_json import print_json
from windlass.cli.output.tables import ago, print_table
from windlass.cli.reach import AppOption, JsonOption, StoreOption, look, reach
from windlass.store.open import redact

dead = typer.Typer(
    help="Dead letters, jobs that have used up their attempts: list, retry, purge.", no_args_is_help=True
)


@dead.command("list")
def list_dead(
    type_: TypeOption = None,
    queue: QueueOption = None,
    limit: LimitOption = 50,
    store: StoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """List dead jobs, newest first."""
    home = look(store, app)
    page = home.jobs.list(status="dead", type=type_, queue=queue, limit=limit)
    if as_json:
        print_json(page.items)
        return
    rows = [[job.id, job.type, job.queue, str(job.attempt), ago(job.finished_at), what_of(job)] for job in page.items]
    print_table(
        ["id", "type", "queue", "attempt", "died", "why"],
        rows,
        empty=f"No dead jobs in {redact(home.store)}.",
        spare=("queue", "attempt"),
    )
    if rows:
        typer.echo(f"\n{Advice(store, app)('windlass jobs show ID')} has the traceback")


@dead.command("retry")
def retry_dead(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Ids of dead jobs.")] = None,
    payload: PayloadOption = None,
    everything: Annotated[bool, typer.Option("--all", help="Every dead job that matches.")] = False,
    type_: TypeOption = None,
    queue: QueueOption = None,
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Run dead jobs again, with a new budget of attempts; --payload changes the arguments of one."""
    if bool(ids) == everything:
        raise typer.BadParameter("name ids, or add --all")
    check_one(ids, payload)
    home = reach(store, app)
    if ids:
        done = sum(1 for _ in retry_each(home, ids, payload))
    else:
        done = home.jobs.retry_all(status="dead", type=type_, queue=queue)
    typer.echo(f"{done} revived")


@dead.command("purge")
def purge_dead(
    type_: TypeOption = None,
    queue: QueueOption = None,
    yes: YesOption = False,
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Delete dead jobs for good."""
    home = reach(store, app)
    count = home.jobs.count(status="dead", type=type_, queue=queue)
    if count:
        ask(f"drop {count:,} dead job{'' if count == 1 else 's'} in {redact(home.store)} for good", yes)
    typer.echo(f"{home.jobs.delete_all(status='dead', type=type_, queue=queue)} dropped")
