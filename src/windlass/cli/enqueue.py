"""windlass enqueue."""

from typing import Annotated, Any

import typer

from windlass.cli.complete import queue_names
from windlass.cli.output.as_json import print_json
from windlass.cli.parse import moment, parse_object, seconds
from windlass.cli.reach import AppOption, JsonOption, StoreOption, is_server, reach
from windlass.client.app import App
from windlass.client.handle import Handle
from windlass.client.tasks.options import check_options, check_together
from windlass.core.flow.queue import NONE
from windlass.core.ids import new_id
from windlass.core.jobs.job import NewJob
from windlass.core.names import check_name

Type = Annotated[str, typer.Argument(metavar="TYPE", help="The task's type.")]
Payload = Annotated[str, typer.Argument(help="Its arguments as a JSON object, such as '{\"user_id\": 42}'.")]
Queue = Annotated[
    str | None,
    typer.Option(help="The queue; with --app the task's, else `default`.", autocompletion=queue_names),
]
Priority = Annotated[int | None, typer.Option(help="-32768 to 32767, higher first.")]
RunAt = Annotated[
    str | None, typer.Option(help="When to run it, such as 2026-01-31T09:00 (UTC, unless it has an offset).")
]
Timeout = Annotated[str | None, typer.Option(help="Longest time of an attempt, such as 300s; or none.")]
Delay = Annotated[str | None, typer.Option(help="Run it after this time: seconds, or such as 60s or 5m.")]
Key = Annotated[
    str | None,
    typer.Option("--key", "--idempotency-key", help="Idempotency key: at most one live job of a queue has it."),
]
Window = Annotated[
    str | None,
    typer.Option("--window", help="The key stays taken for this time after the job has ended, such as 1h."),
]
OnConflict = Annotated[
    str | None, typer.Option(help="If another job has the key: existing (default), replace or raise.")
]
Attempts = Annotated[int | None, typer.Option(help="Give up after this number of failures.")]
Expires = Annotated[str | None, typer.Option(help="Cancel it if it has not started within this time, such as 10m.")]
ConcurrencyKey = Annotated[
    str | None, typer.Option(help="At most --key-limit jobs of the queue with this key run at once.")
]
KeyLimit = Annotated[int | None, typer.Option(help="How many jobs with its key may run at once; default 1.")]
KeyStrict = Annotated[
    bool | None,
    typer.Option("--key-strict/--key-any", help="Whether jobs with its key run in strict order, retries included."),
]
KeyRate = Annotated[str | None, typer.Option(help="How many jobs with its key may start per time, such as 10/s.")]
RateCost = Annotated[
    int | None, typer.Option(help="Tokens that its start takes from its queue's rate and its key's.")
]
Tenant = Annotated[str | None, typer.Option(help="Its tenant: in a fair queue tenants share the workers.")]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag; may be repeated.")]
Meta = Annotated[str | None, typer.Option(help="A JSON object that is kept and shown with the job.")]
Parent = Annotated[str | None, typer.Option(help="The id of the job that this one comes from.")]


def enqueue(
    type_: Type,
    payload: Payload = "{}",
    queue: Queue = None,
    priority: Priority = None,
    delay: Delay = None,
    run_at: RunAt = None,
    idempotency_key: Key = None,
    window: Window = None,
    on_conflict: OnConflict = None,
    max_attempts: Attempts = None,
    timeout: Timeout = None,
    expires: Expires = None,
    concurrency_key: ConcurrencyKey = None,
    key_limit: KeyLimit = None,
    key_strict: KeyStrict = None,
    key_rate: KeyRate = None,
    rate_cost: RateCost = None,
    tenant: Tenant = None,
    tags: Tags = None,
    meta: Meta = None,
    parent: Parent = None,
    store: StoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Enqueue a job."""
    given = {
        "queue": queue,
        "priority": priority,
        "delay": seconds(delay, "--delay"),
        "run_at": None if run_at is None else moment(run_at, "--run-at"),
        "idempotency_key": idempotency_key,
        "idempotency_window": seconds(window, "--window"),
        "on_conflict": on_conflict,
        "max_attempts": max_attempts,
        "timeout": timeout if timeout == NONE else seconds(timeout, "--timeout"),
        "expires": seconds(expires, "--expires"),
        "concurrency_key": concurrency_key,
        "key_limit": key_limit,
        "key_order": _order(key_strict),
        "key_rate": key_rate,
        "rate_cost": rate_cost,
        "tenant": tenant,
        "tags": tags or None,
        "meta": None if meta is None else parse_object(meta, "--meta"),
        "parent": parent,
    }
    home = reach(store, app, make=True)
    _tell(_enqueue(home, type_, payload, given), checked=app is not None or is_server(home.store), as_json=as_json)


def _enqueue(home: App, type_: str, payload: str, given: dict[str, Any]) -> Handle[Any]:
    """The task with the given options; a timeout of None lifts the limit."""
    options = {name: value for name, value in given.items() if value is not None}
    if options.get("timeout") == NONE:
        options["timeout"] = None
    return home.enqueue_many([make_job(home, type_, payload, options)])[0]


def _order(strict: bool | None) -> str | None:
    return None if strict is None else "strict" if strict else "any"


def _tell(handle: Handle[Any], *, checked: bool, as_json: bool) -> None:
    if not checked:
        typer.echo("note: the type and its arguments were not checked; --app module:object does that", err=True)
    if as_json:
        print_json({"id": handle.id, "existing": handle.existing})
    else:
        typer.echo(f"{handle.id}{' (exists already)' if handle.existing else ''}")


def make_job(home: App, type_: str, payload: str, options: dict[str, Any]) -> NewJob:
    """A job from text; with an app, its arguments are checked against the task."""
    arguments = parse_object(payload, "payload")
    check_name(type_, "type")
    fields = check_options(options)
    if not len(home.registry.types):
        check_together(fields)
        text = home.registry.check(type_, arguments, home.payload_limit)
        return NewJob(id=new_id(), type=type_, payload=text, **fields)
    definition = home.registry.get(type_)
    text = definition.signature.check(arguments, home.payload_limit)
    # The definition's own type: aliases are for stored jobs.
    return NewJob(id=new_id(), type=definition.type, payload=text, **definition.fields(fields, text))
