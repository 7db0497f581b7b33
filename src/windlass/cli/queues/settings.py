"""windlass queues set, windlass queues reset."""

from typing import Annotated, Any

import msgspec
import typer

from windlass.cli.complete import queue_names
from windlass.cli.queues.wording import sentence
from windlass.cli.reach import AppOption, StoreOption, reach
from windlass.client.app import App
from windlass.core.flow.queue import NONE, Queue
from windlass.core.jobs.retry import Exponential
from windlass.core.moments import SECOND, parse_duration
from windlass.errors import InvalidOption

_SHORT = {"rate": "rate_limit", "weight": "weights"}
"""Short names that `set` and `reset` accept."""

NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The queue.", autocompletion=queue_names)]
AtOnce = Annotated[
    str | None, typer.Option("--max-concurrency", help="How many jobs may run at once, over all workers; or none.")
]
Rate = Annotated[
    str | None,
    typer.Option(
        "--rate",
        "--rate-limit",
        help='How many jobs may start per time, such as 10/s, 600/m, "10/s burst 50"; or none.',
    ),
]
Fair = Annotated[bool | None, typer.Option("--fair/--no-fair", help="Whether tenants share the workers by weight.")]
Weights = Annotated[
    list[str] | None,
    typer.Option("--weight", help="The weight of a tenant, such as acme=2; may be repeated. Others have 1."),
]
Ageing = Annotated[
    str | None,
    typer.Option(help="After this time of waiting a job moves up to the next higher priority, such as 10m; or none."),
]


def set_queue(
    name: NameArgument,
    max_concurrency: AtOnce = None,
    rate: Rate = None,
    fair: Fair = None,
    weight: Weights = None,
    ageing: Ageing = None,
    max_attempts: Annotated[int | None, typer.Option(help="Attempts of jobs whose task sets none.")] = None,
    retry_base: Annotated[str | None, typer.Option(help="First wait of the back-off, such as 60s.")] = None,
    retry_cap: Annotated[str | None, typer.Option(help="Longest wait, such as 1h.")] = None,
    timeout: Annotated[str | None, typer.Option(help="Longest time of an attempt, such as 300s; or none.")] = None,
    keep_completed: Annotated[str | None, typer.Option(help="Retention of completed jobs, such as 7d.")] = None,
    keep_cancelled: Annotated[str | None, typer.Option(help="Retention of cancelled jobs.")] = None,
    keep_dead: Annotated[str | None, typer.Option(help="Retention of dead jobs.")] = None,
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Change settings of a queue, on all workers within a second; this overrides what the code declares.

    Options that are not given stay; `reset` undoes it.
    """
    home = reach(store, app)
    kept = {"completed": keep_completed, "cancelled": keep_cancelled, "dead": keep_dead}
    waits = {"base": retry_base, "cap": retry_cap}
    given = {key: parse_duration(text, f"--retry-{key}") / SECOND for key, text in waits.items() if text is not None}
    queue = home.queues.set(
        name,
        max_concurrency=_whole(max_concurrency),
        rate_limit=rate,
        fair=fair,
        weights=_weights(weight or []),
        ageing=_length(ageing, "--ageing"),
        max_attempts=max_attempts,
        retry=msgspec.structs.replace(_backoff(home, name), **given) if given else None,
        timeout=_length(timeout, "--timeout"),
        retention={key: parse_duration(text, f"--keep-{key}") / SECOND for key, text in kept.items() if text},
    )
    typer.echo(f"{queue.name}: {sentence(queue)}")


def reset(
    name: NameArgument,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SETTING]...", help="Only these, such as rate-limit or max-concurrency."),
    ] = None,
    store: StoreOption = None,
    app: AppOption = None,
) -> None:
    """Undo what operators have set: everything, or the named settings."""
    chosen = [_SHORT.get(each, each.replace("-", "_")) for each in names or ()]
    queue = reach(store, app).queues.reset(name, *chosen)
    typer.echo(f"{queue.name}: {sentence(queue)}")


def _whole(text: str | None) -> Any:
    """A number; other text passes unchanged, to be refused by the client."""
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 20 else text


def _length(text: str | None, option: str) -> Any:
    return text if text in (None, NONE) else parse_duration(text, option) / SECOND


def _weights(texts: list[str]) -> dict[str, float]:
    found = {}
    for text in texts:
        tenant, _, weight = text.rpartition("=")
        try:
            found[tenant] = float(weight)
        except ValueError:
            raise InvalidOption("--weight", f"{text!r:.100} is not a tenant and a number, such as acme=2") from None
    return found


def _backoff(home: App, name: str) -> Exponential:
    """Unchanged, if only one of two options is given."""
    queues = {queue.name: queue for queue in home.queues.list()}
    retry = queues.get(name, Queue(name=name)).rules.retry
    return retry if isinstance(retry, Exponential) else Exponential()
