"""The commands by name. Each is imported when it is called or listed: a call does not pay for the others."""

from collections import UserDict
from importlib import import_module
from typing import Any

import typer.main
from typer.core import TyperCommand, TyperGroup

COMMANDS = {
    "demo": "run:demo",
    "worker": "run:worker",
    "dev": "dev:dev",
    "serve": "serve:serve",
    "coordinator": "run:coordinator",
    "enqueue": "enqueue:enqueue",
    "audit": "tokens:audit",
    "stats": "stats:stats",
    "top": "top.command:top",
    "scale": "stats:scale",
    "migrate": "run:migrate",
    "doctor": "doctor:doctor",
    "bench": "bench:bench",
    "check-worker": "check_worker:check_worker",
    "jobs": "jobs.commands:jobs",
    "dead": "jobs.dead:dead",
    "queues": "queues.commands:queues",
    "schedules": "schedules.commands:schedules",
    "flows": "flows:flows",
    "workers": "queues.commands:workers",
    "webhooks": "webhooks:webhooks",
    "token": "tokens:token",
}
"""Name → module of this folder, and the function or table of commands in it, in the order of `--help`."""


class Commands(TyperGroup):
    """The group `windlass`."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Loaded({**COMMANDS, **self.commands})


class _Loaded(UserDict[str, Any]):
    """Commands, each imported when it is first read."""

    def __getitem__(self, name: str) -> TyperCommand | TyperGroup:
        found = self.data[name]
        if isinstance(found, str):
            found = self.data[name] = _load(name, found)
        return found  # type: ignore[no-any-return]


def _load(name: str, target: str) -> Any:
    module, _, attribute = target.partition(":")
    found = getattr(import_module(f"windlass.cli.{module}"), attribute)
    alone = typer.Typer()
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name)
    else:
        alone.command(name)(found)
    return typer.main.get_group(alone).commands[name]
