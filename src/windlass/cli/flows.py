"""windlass flows: groups of jobs."""

from typing import Annotated

import msgspec
import typer

from windlass.cli.json_output import print_json
from windlass.cli.output import ago, print_table
from windlass.cli.reach import AppOption, JsonOption, StoreOption, look, reach
from windlass.core.groups.flow import Flow
from windlass.store.open import redact

flows = typer.Typer(help="Groups of jobs and their callbacks: list, show, cancel, retry.", no_args_is_help=True)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of the group, or the name that it was given.")]
WIDTH = 30
"""Of the bar that shows the members."""


@flows.command("list")
def list_flows(
    limit: Annotated[int, typer.Option(help="How many, newest first.")] = 50,
    store: StoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """List groups, newest first, with how many members had completed when the group last looked."""
    home = look(store, app)
    found = home.flows.list(limit=limit)
    if as_json:
        print_json([_record(each) for each in found])
        return
    rows = [
        [each.name or each.id, each.status, f"{each.completed:,} of {each.size:,}", ago(each.created_at)]
        for each in found
    ]
    empty = f"No groups in {redact(home.store)}."
    print_table(["flow", "status", "completed", "created"], rows, empty=empty)


@flows.command()
def show(id_: IdArgument, store: StoreOption = None, app: AppOption = None, as_json: JsonOption = False) -> None:
    """Show a group: its members by status, its callbacks, and what holds it up."""
    found = look(store, app).flows.get(id_)
    if as_json:
        print_json(_record(found))
    else:
        _draw(found)


@flows.command()
def cancel(
    id_: IdArgument,
    reason: Annotated[str, typer.Option(help="Kept with the jobs.")] = "cancelled by an operator",
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Cancel a group with its members; its `always` callback still runs when all have ended."""
    _draw(reach(store, app).flows.cancel(id_, reason))


@flows.command()
def retry(id_: IdArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Run the dead and cancelled members of a group again; its `then` waits for them again."""
    _draw(reach(store, app).flows.retry(id_))


def _record(flow: Flow) -> dict[str, object]:
    return {**msgspec.structs.asdict(flow), "live": flow.live}


def _draw(flow: Flow) -> None:
    name = f" ({flow.name})" if flow.name else ""
    typer.echo(f"flow {flow.id}{name} is {flow.status}" + (f": {flow.reason}" if flow.reason else ""))
    counts = {"completed": flow.completed, "dead": flow.dead, "cancelled": flow.cancelled, "live": flow.live}
    told = ", ".join(f"{count:,} {status}" for status, count in counts.items() if count)
    more = "" if flow.sealed else "; more may come"
    typer.echo(f"  [{_bar(flow)}] {flow.size:,} members: {told or 'none'}{more}")
    for each in flow.callbacks:
        typer.echo(f"  └─ {each.role:<8} {each.type} {each.id} is {each.status}")
    if flow.waits_for is not None:
        typer.echo(f"  waits for {flow.waits_for}: windlass jobs why {flow.waits_for}")


def _bar(flow: Flow) -> str:
    """Completed members as `#`, lost ones as `x`."""
    size = max(1, flow.size)
    done, lost = (WIDTH * count // size for count in (flow.completed, flow.dead + flow.cancelled))
    return ("#" * done + "x" * lost).ljust(WIDTH, ".")
