"""windlass flows: groups and graphs of jobs."""

from typing import Annotated

import msgspec
import typer

from windlass.cli.output.as_json import print_json
from windlass.cli.output.flow_drawing import draw_graph
from windlass.cli.output.tables import ago, print_table
from windlass.cli.reach import AppOption, JsonOption, StoreOption, look, reach
from windlass.client.app import App
from windlass.core.groups.flow import Flow
from windlass.core.text import printable
from windlass.store.open import redact

flows = typer.Typer(
    help="Flows, which are groups and graphs of jobs: list, show, cancel, retry.", no_args_is_help=True
)

IdArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID", help="The id of the flow, or its first or last characters, or the name that it was given."
    ),
]
WIDTH = 30
"""The width of the bar that shows the members."""


@flows.command("list")
def list_flows(
    limit: Annotated[int, typer.Option(help="At most this many.")] = 50,
    store: StoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """List flows, newest first, with how many jobs had completed at the last count."""
    home = look(store, app)
    found = home.flows.list(limit=limit)
    if as_json:
        print_json([_record(each) for each in found])
        return
    rows = [
        [each.name or each.id, each.kind, each.status, f"{each.completed:,} of {each.size:,}", ago(each.created_at)]
        for each in found
    ]
    empty = f"No flows in {redact(home.store)}."
    print_table(["flow", "kind", "status", "completed", "created"], rows, empty=empty)


@flows.command()
def show(id_: IdArgument, store: StoreOption = None, app: AppOption = None, as_json: JsonOption = False) -> None:
    """Show a flow: its jobs by status, a drawing of the graph, and what it waits for."""
    home = look(store, app)
    found = home.flows.get(home.flows.find(id_))
    if as_json:
        nodes = home.flows.tree(found.id).nodes
        print_json({**_record(found), "nodes": [msgspec.to_builtins(node) for node in nodes]})
    else:
        _draw(home, found)


@flows.command()
def cancel(
    id_: IdArgument,
    reason: Annotated[str, typer.Option(help="Kept with the jobs.")] = "cancelled by an operator",
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Cancel a flow with its jobs; `always` of a group, and nodes with `when="ended"`, still run at the end."""
    home = reach(store, app)
    _draw(home, home.flows.cancel(home.flows.find(id_), reason))


@flows.command()
def retry(id_: IdArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Run the dead and cancelled jobs of a flow again; their dependents wait for them again."""
    home = reach(store, app)
    _draw(home, home.flows.retry(home.flows.find(id_)))


def _record(flow: Flow) -> dict[str, object]:
    return {**msgspec.structs.asdict(flow), "live": flow.live}


def _draw(home: App, flow: Flow) -> None:
    name = f" ({flow.name})" if flow.name else ""
    shown = f"flow {flow.id}{name} is {flow.status}" + (f": {flow.reason}" if flow.reason else "")
    typer.echo(printable(shown))
    counts = {name: getattr(flow, name) for name in ("completed", "dead", "cancelled", "skipped", "live")}
    shown = ", ".join(f"{count:,} {status}" for status, count in counts.items() if count)
    what = "nodes" if flow.kind == "graph" else "members"
    more = "" if flow.sealed else "; more may come"
    typer.echo(f"  [{progress_bar(flow)}] {flow.size:,} {what}: {shown or 'none'}{more}")
    if flow.kind == "graph":
        for line in draw_graph(home.flows.tree(flow.id)):
            typer.echo(f"  {line}")
    for each in flow.callbacks:
        typer.echo(f"  └─ {each.role:<8} {each.type} {each.id} is {each.status}")
    if flow.waits_for is not None:
        typer.echo(f"  waits for {flow.waits_for}: windlass jobs why {flow.waits_for}")


def progress_bar(flow: Flow) -> str:
    """Completed members as `#`, lost ones as `x`, skipped ones as `-`."""
    size, ended, bar = max(1, flow.size), 0, ""
    for char, count in (("#", flow.completed), ("x", flow.dead + flow.cancelled), ("-", flow.skipped)):
        ended += count
        bar = bar.ljust(WIDTH * ended // size, char)
    return bar.ljust(WIDTH, ".")
