"""windlass webhooks."""

from typing import Annotated, Any

import typer

from windlass.cli.ask import YesOption, ask
from windlass.cli.output.as_json import print_json
from windlass.cli.output.tables import ago, print_table
from windlass.cli.reach import AppOption, JsonOption, StoreOption, look, reach
from windlass.client.app import App
from windlass.client.verbs.webhooks import DEFAULT_OVERLAP, NewSecret
from windlass.core.jobs.job import Job
from windlass.core.moments import SECOND, parse_duration, show_duration
from windlass.core.text import cut
from windlass.core.webhooks.delivery import WEBHOOK_QUEUE, event_and_job
from windlass.core.webhooks.webhook import DEFAULT_ATTEMPTS, ENDS, Webhook
from windlass.errors import JobDead
from windlass.store.open import redact

webhooks = typer.Typer(
    help="Addresses that get an event when a job or flow ends: list, show, add, test, pause, resume, rotate, remove.",
    no_args_is_help=True,
)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The webhook.")]
TEST_SECONDS = 45.0
MAX_SHOWN = 60


@webhooks.command("list")
def list_webhooks(store: StoreOption = None, app: AppOption = None, as_json: JsonOption = False) -> None:
    """List webhooks."""
    home = look(store, app)
    found = home.webhooks.list()
    if as_json:
        print_json(found)
        return
    rows = [
        [each.name, each.url, _selection(each), "paused" if each.paused else "active", ago(each.created_at)]
        for each in found
    ]
    empty = f"No webhooks in {redact(home.store)}."
    print_table(["name", "url", "events", "state", "created"], rows, empty=empty, spare=("created",))


@webhooks.command()
def show(
    name: NameArgument,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many deliveries, newest first.")] = 10,
    store: StoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a webhook and its last deliveries."""
    home = look(store, app)
    found, deliveries = home.webhooks.get(name), home.webhooks.deliveries(name, limit=limit)
    if as_json:
        print_json({"webhook": found, "deliveries": [_record(each) for each in deliveries]})
        return
    state = "paused" if found.paused else "active"
    typer.echo(f"{found.name}: {state}, {found.url}")
    typer.echo(f"gets {_selection(found)}; {'with' if found.contents else 'without'} payloads and results")
    attempts = f"at most {found.max_attempts} attempts of {show_duration(round(found.timeout * SECOND))}"
    old = f"; the old secret also signs until {ago(found.old_secret_until)}" if found.old_secret_until else ""
    typer.echo(f"{attempts}{old}\n")
    columns = ["delivery", "event", "job", "status", "attempt", "answer", "updated"]
    print_table(columns, map(_row, deliveries), empty="Nothing was delivered yet.")


@webhooks.command()
def add(
    name: NameArgument,
    url: Annotated[str, typer.Argument(help="Where events are sent by POST, such as https://example.com/hook.")],
    event: Annotated[
        list[str] | None, typer.Option("--event", help=f"{', '.join(ENDS)}; may be repeated. Default: all.")
    ] = None,
    queue: Annotated[list[str] | None, typer.Option("--queue", help="Only this queue; may be repeated.")] = None,
    type_: Annotated[
        list[str] | None, typer.Option("--type", help="Only this type, such as 'img.*'; may be repeated.")
    ] = None,
    contents: Annotated[bool, typer.Option("--contents", help="Send the job's payload and result too.")] = False,
    hide: Annotated[
        list[str] | None, typer.Option("--hide", help="A field to leave out with --contents; may be repeated.")
    ] = None,
    max_attempts: Annotated[
        int, typer.Option(help="Attempts of a delivery; then it is a dead letter.")
    ] = DEFAULT_ATTEMPTS,
    timeout: Annotated[str, typer.Option(help="How long a receiver may take, up to 30s.")] = "15s",
    store: StoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a webhook and show its secret, once."""
    home = reach(store, app, make=True)
    new = home.webhooks.add(
        name,
        url,
        events=event or ENDS,
        queues=queue or (),
        types=type_ or (),
        contents=contents,
        hide=hide or (),
        max_attempts=max_attempts,
        timeout=parse_duration(timeout, "--timeout") / SECOND,
    )
    _show_secret(new, as_json)
    _warn_unserved(home)


@webhooks.command("test")
def send_test(name: NameArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Deliver a test event, once, and wait for the answer."""
    handle = reach(store, app).webhooks.test(name)
    try:
        answer = handle.result(timeout=TEST_SECONDS)
    except JobDead as error:
        typer.echo(f"not delivered: {error}", err=True)
        raise typer.Exit(1) from None
    except TimeoutError:
        typer.echo(f"no worker has delivered {handle.id} yet; see windlass jobs why {handle.id}", err=True)
        raise typer.Exit(1) from None
    typer.echo(f"delivered: the receiver answered {answer['status']} after {answer['seconds']:.3f} s")


@webhooks.command()
def pause(name: NameArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Pause a webhook; events during the pause are delivered when it is resumed."""
    reach(store, app).webhooks.pause(name)
    typer.echo(f"{name} is paused")


@webhooks.command()
def resume(name: NameArgument, store: StoreOption = None, app: AppOption = None) -> None:
    """Resume a webhook, first with the events of the pause."""
    reach(store, app).webhooks.resume(name)
    typer.echo(f"{name} is active")


@webhooks.command()
def rotate(
    name: NameArgument,
    overlap: Annotated[
        str, typer.Option(help="How long the old secret also signs; 0s: not at all.")
    ] = DEFAULT_OVERLAP,
    store: StoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Give a webhook a new secret and show it, once."""
    seconds = parse_duration(overlap, "--overlap") / SECOND
    _show_secret(reach(store, app).webhooks.rotate(name, overlap=seconds), as_json)


@webhooks.command()
def remove(name: NameArgument, yes: YesOption = False, store: StoreOption = None, app: AppOption = None) -> None:
    """Remove a webhook; deliveries that have not been sent are cancelled."""
    home = reach(store, app)
    home.webhooks.get(name)
    ask(f"remove webhook {name}", yes)
    home.webhooks.remove(name)
    typer.echo(f"{name} is removed")


def _show_secret(new: NewSecret, as_json: bool) -> None:
    if as_json:
        print_json({"webhook": new.webhook, "secret": new.secret})
        return
    typer.echo(new.secret)
    typer.echo(f"note: the secret of {new.webhook.name} is shown only now; its receiver verifies by it", err=True)


def _warn_unserved(home: App) -> None:
    workers = home.workers.list()
    if workers and not any(worker.queues and WEBHOOK_QUEUE in worker.queues for worker in workers):
        typer.echo(
            f"note: workers deliver from the queue {WEBHOOK_QUEUE}; one that has --queues must name it",
            err=True,
        )


def _selection(webhook: Webhook) -> str:
    limits = [*(f"queue {each}" for each in webhook.queues), *(f"type {each}" for each in webhook.types)]
    return f"{', '.join(webhook.events)}" + (f" ({', '.join(limits)})" if limits else "")


def _record(job: Job) -> dict[str, Any]:
    event, about = event_and_job(job.payload)
    return {
        "id": job.id,
        "event": event,
        "job": about,
        "status": job.status,
        "attempt": job.attempt,
        "answer": _answer(job),
        "updated_at": job.updated_at,
    }


def _answer(job: Job) -> str | None:
    if isinstance(job.result, dict):
        return str(job.result.get("status"))
    return job.reason or (job.error.message if job.error else None)


def _row(job: Job) -> list[str]:
    found = _record(job)
    answer = cut(found["answer"] or "-", MAX_SHOWN)
    about = [found["event"] or "-", found["job"] or "-", job.status, str(job.attempt), answer]
    return [job.id, *about, ago(job.updated_at)]
