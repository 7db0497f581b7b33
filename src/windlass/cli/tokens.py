"""windlass token, windlass audit."""

from typing import Annotated, Any

import msgspec
import typer

from windlass.cli.output.as_json import print_json
from windlass.cli.output.tables import ago, clock, print_table
from windlass.cli.reach import AppOption, JsonOption, OwnStoreOption, StoreOption, look, reach
from windlass.client.verbs.audit import AuditEntry
from windlass.client.verbs.tokens import NewToken
from windlass.core.moments import SECOND, parse_duration
from windlass.core.tokens import Scope, Token

token = typer.Typer(help="Tokens of the REST server: create, list, revoke, rotate.", no_args_is_help=True)

IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The token's id, as `token list` shows it.")]


@token.command()
def create(
    name: Annotated[str, typer.Argument(help="What it is for, such as a team or a program.")],
    scope: Annotated[list[str], typer.Option("--scope", help=f"{', '.join(Scope)}; may be repeated.")],
    queue: Annotated[list[str] | None, typer.Option("--queue", help="Only this queue; may be repeated.")] = None,
    type_: Annotated[list[str] | None, typer.Option("--type", help="Only this type; may be repeated.")] = None,
    expires: Annotated[str | None, typer.Option(help="Invalid after this time, such as 90d.")] = None,
    store: OwnStoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a token and show its text, once: only its hash is kept."""
    seconds = None if expires is None else parse_duration(expires, "--expires") / SECOND
    home = reach(store, app, make=True, through_server=False)
    _show_new(home.tokens.create(name, scope, queues=queue or (), types=type_ or (), expires=seconds), as_json)


@token.command("list")
def list_tokens(store: OwnStoreOption = None, app: AppOption = None, as_json: JsonOption = False) -> None:
    """List the valid tokens."""
    found = look(store, app, through_server=False).tokens.list()
    if as_json:
        print_json(found)
        return
    columns = ["id", "name", "scopes", "limited to", "created", "expires", "last used"]
    print_table(columns, map(_row, found), empty="No tokens.", spare=("created",))


@token.command()
def revoke(id_: IdArgument, store: OwnStoreOption = None, app: AppOption = None) -> None:
    """Make a token invalid; servers notice within 5 seconds."""
    reach(store, app, through_server=False).tokens.revoke(id_)
    typer.echo(f"{id_} is revoked")


@token.command()
def rotate(id_: IdArgument, store: OwnStoreOption = None, app: AppOption = None, as_json: JsonOption = False) -> None:
    """Give a token a new secret; its old text becomes invalid."""
    _show_new(reach(store, app, through_server=False).tokens.rotate(id_), as_json)


def audit(
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="The number of entries.")] = 50,
    store: StoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what operators did, the newest first."""
    entries = look(store, app).audit.list(limit).items
    if as_json:
        print_json(entries)
        return
    columns = ["when", "who", "from", "action", "target", "change"]
    print_table(columns, map(_entry_row, entries), empty="No operator has done anything yet.", spare=("from",))


def _show_new(new: NewToken, as_json: bool) -> None:
    if as_json:
        print_json({"id": new.token.id, "name": new.token.name, "token": new.text})
        return
    typer.echo(new.text)
    typer.echo(f"token {new.token.id} ({new.token.name}): it is shown only now; keep it like a password", err=True)


def _row(token: Token) -> list[str]:
    limits = [*(f"queue {each}" for each in token.queues), *(f"type {each}" for each in token.types)]
    expires = "never" if token.expires_at is None else ago(token.expires_at)
    scopes, limited = ", ".join(token.scopes), ", ".join(limits) or "-"
    return [token.id, token.name, scopes, limited, ago(token.created_at), expires, ago(token.last_used_at)]


def _entry_row(entry: AuditEntry) -> list[str]:
    actor = entry.actor
    source = f"{actor.source} {actor.address}" if actor.address else actor.source
    return [clock(entry.at), actor.name, source, entry.action, entry.target, _change(entry.before, entry.after)]


def _change(before: Any, after: Any) -> str:
    """What changed, in a line."""
    old = before if isinstance(before, dict) else {}
    if not isinstance(after, dict):
        return ""
    changed = {name: value for name, value in after.items() if value is not None and value != old.get(name)}
    return ", ".join(f"{name}={_text(value)}" for name, value in changed.items())[:200]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
