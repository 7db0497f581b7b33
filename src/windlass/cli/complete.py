"""Shell completion of values: statuses, and names from the store that the line reaches."""

from collections.abc import Callable, Iterable

import typer

from windlass.cli.reach import look
from windlass.client.app import App
from windlass.core.status import Status
from windlass.errors import WindlassError


def statuses(incomplete: str) -> list[str]:
    return [status for status in Status if status.startswith(incomplete)]


def queue_names(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, incomplete, lambda home: (queue.name for queue in home.queues.list()))


def schedule_names(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, incomplete, lambda home: (schedule.name for schedule in home.schedules.list()))


def _names(context: typer.Context, incomplete: str, read: Callable[[App], Iterable[str]]) -> list[str]:
    """Empty if the store cannot be read: a completion prints no error."""
    try:
        home = look(context.params.get("store"), context.params.get("app"))
        try:
            return [name for name in read(home) if name.startswith(incomplete)]
        finally:
            home.close()
    except WindlassError:
        return []
