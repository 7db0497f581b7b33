"""Writes docs/reference from the code, so that the pages cannot be wrong.

python tools/reference.py           write the pages
python tools/reference.py --check   exit 1 if a page differs from what would be written
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any, is_typeddict

import msgspec
import typer
from limits import sections
from signatures import ALIASES, calls, type_text

import windlass
import windlass_pytest
from windlass import errors, testing
from windlass.cli.main import cli
from windlass.client.runtime.portal import blocking
from windlass.client.verbs.actions import Actions
from windlass.client.verbs.audit_log import Audit
from windlass.client.verbs.jobs import Jobs
from windlass.client.verbs.queues import Queues
from windlass.client.verbs.schedules import Schedules
from windlass.client.verbs.stats import Stats, Workers
from windlass.client.verbs.tokens import Tokens
from windlass.client.verbs.webhooks import Webhooks
from windlass.contrib.django import fresh_connections
from windlass.contrib.otel import measure_jobs, trace_jobs
from windlass.contrib.sentry import report_to_sentry
from windlass.core import events, log_events
from windlass.remote import RemoteApp, Worker
from windlass.server import asgi, wsgi
from windlass.store.redis.connection.inspection import SHARDED, acl_rules
from windlass.store.redis.records.keys import DEFAULT_PREFIX, GLOBAL, GLOBAL_KEYS, QUEUE_KEYS

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
NOTICE = "<!-- Written by tools/reference.py from the code: change the code, then run `make docs`. -->"


def main() -> int:
    """Write or compare every page; the exit code."""
    wrong = []
    for name, page in PAGES.items():
        text, path = render(name, page), FOLDER / f"{name}.md"
        if "--check" not in sys.argv[1:]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            wrong.append(path)
    for path in wrong:
        print(f"docs/reference/{path.name} is not up to date: run `make docs`")
    return 1 if wrong else 0


def render(name: str, page: Callable[[], Iterator[str]]) -> str:
    """One page as text."""
    lines = [NOTICE, "", *page()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def table(columns: list[str], rows: list[list[str]]) -> Iterator[str]:
    """A Markdown table."""
    yield ""
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |"
    yield ""


# The command line.


def cli_page() -> Iterator[str]:
    """Every command with its arguments, options, defaults and variables."""
    yield "# Command line"
    yield ""
    yield (
        "Exit codes: 0 done, 1 failed, 2 wrong call. Every option can also be given as the environment variable "
        "named beside it. Flags come first, then variables, then `windlass.toml` or `[tool.windlass]` in "
        "`pyproject.toml` in the current folder: there `store` is the store's address, `blobs` the folder of large "
        "payloads and results, and the table `worker` holds "
        "options of `windlass worker` by their names (`concurrency = 20`)."
    )
    root: Any = typer.main.get_command(cli)
    yield from _group(root, "windlass")


def _group(group: Any, path: str) -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _group(command, f"{path} {name}")
        else:
            yield from _command(command, f"{path} {name}")


def _command(command: Any, path: str) -> Iterator[str]:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    shown = [_metavar(each) if each.required else f"[{_metavar(each)}]" for each in arguments]
    yield ""
    yield f"## {path}"
    yield ""
    yield inspect.cleandoc(command.help)
    yield ""
    yield f"`{' '.join([path, *shown, '[OPTIONS]' if options else '']).strip()}`"
    rows = [
        [
            f"`{_metavar(each)}`" if each in arguments else f"`{', '.join(each.opts)}`",
            each.help or "",
            "required" if each.required else _default(each.default),
            f"`{each.envvar or _variable(path, each.name)}`" if each.envvar or each in options else "",
        ]
        for each in [*arguments, *options]
    ]
    if rows:
        yield from table(["", "meaning", "default", "variable"], rows)


def _metavar(argument: Any) -> str:
    return str(argument.metavar or argument.name.strip("_").upper())


def _variable(path: str, name: str) -> str:
    return "_".join([*path.split(), name]).upper()


def _default(value: Any) -> str:
    return "" if value is None or value is False else f"`{value}`"


# Errors.


def errors_page() -> Iterator[str]:
    """The tree, and every class with its code."""
    yield "# Errors"
    yield ""
    drawing = inspect.cleandoc(errors.__doc__ or "").split("\n\n")[1]
    yield "```text"
    yield inspect.cleandoc(drawing)
    yield "```"
    yield ""
    yield "`code` never changes: it is what programs compare. What is raised inside a handler to decide its outcome"
    yield "(`Retry`, `Snooze`, `Cancel`, `Dead`) is not an error and not in this tree."
    everything = [each for each in {**vars(errors), **vars(windlass)}.values() if inspect.isclass(each)]
    classes = [each for each in everything if issubclass(each, errors.WindlassError)]
    rows = [[f"`{each.__name__}`", f"`{each.code}`", _prose(each)] for each in classes]
    yield from table(["class", "code", "meaning"], rows)


def _prose(thing: Any) -> str:
    return " ".join(inspect.cleandoc(thing.__doc__ or "").split())


# Events.


def events_page() -> Iterator[str]:
    """What logs, and later metrics and streams, are made of."""
    yield "# Events"
    yield ""
    yield _prose(events)
    for each in event_classes():
        yield ""
        yield f"## {each.__name__}"
        yield ""
        yield _prose(each)
        yield from table(
            ["field", "type"], [[f"`{f.name}`", f"`{type_text(f.type)}`"] for f in msgspec.structs.fields(each)]
        )


def event_classes() -> list[type[events.Event]]:
    """Every event there is, in the order of the module."""
    defined = [*vars(events).values(), *vars(log_events).values()]
    found = [each for each in dict.fromkeys(filter(inspect.isclass, defined)) if issubclass(each, events.Event)]
    return [each for each in found if each is not events.Event]


# Settings.


def settings_page() -> Iterator[str]:
    """Defaults and limits, as the code has them."""
    yield "# Settings and limits"
    for title, rows in sections().items():
        yield ""
        yield f"## {title}"
        yield from table(["", ""], [[name, value] for name, value in rows.items()])


# Python.


def python_page() -> Iterator[str]:
    """Every public name with its signature."""
    yield "# Python"
    yield ""
    yield "Everything is importable from `windlass`, unless it names a module; errors have [a page](errors.md)."
    for name in windlass.__all__:
        thing = getattr(windlass, name)
        if is_typeddict(thing):
            yield from _options(thing, name)
        elif inspect.isclass(thing) and not (issubclass(thing, errors.WindlassError)):
            yield from _class(thing, name)
        elif inspect.isfunction(thing):
            yield from _section(name, thing)
            yield ""
            yield calls(name, thing)
        elif name in ALIASES:
            yield from ("", f"## {name}", "", "`{}`\n\n{}".format(*ALIASES[name]))
    for each, face in FACES.items():
        yield from _class(each, face)
    for function, module in MODULES.items():
        yield from _section(f"{module}.{function.__name__}", function)
        yield ""
        yield calls(function.__name__, function)
    for each in (RemoteApp, Worker):
        yield from (*_section(f"windlass.remote.{each.__name__}", each), "", calls(each.__name__, each.__init__))


def _options(thing: Any, name: str) -> Iterator[str]:
    yield from _section(name, thing)
    hints = inspect.get_annotations(thing).items()
    yield from table(["option", "type"], [[f"`{key}`", f"`{type_text(hint)}`"] for key, hint in hints])


# Testing.


def testing_page() -> Iterator[str]:
    """What a program's own tests may use."""
    yield "# Testing"
    yield ""
    yield "Everything here is importable from `windlass.testing`; `App.testing()` is described [here](python.md#app)."
    for name in testing.__all__:
        thing = getattr(testing, name)
        if inspect.isclass(thing):
            yield from _class(thing, name)
        else:
            call = "await " if inspect.iscoroutinefunction(thing) else ""
            yield from _section(name, thing)
            yield ""
            yield calls(call + name, thing)
    yield ""
    yield "## Fixtures of the pytest plugin"
    yield ""
    yield "The setting `windlass_app` (`module:object`) names the app."
    fixtures = [windlass_pytest.windlass_app, windlass_pytest.windlass_sandbox, windlass_pytest.windlass_clock]
    yield from table(["fixture", ""], [[f"`{each.__name__}`", _prose(each)] for each in fixtures])


def _section(title: str, thing: Any) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    yield inspect.cleandoc(thing.__doc__ or "")


def _class(thing: type, title: str) -> Iterator[str]:
    yield from _section(title, thing)
    if issubclass(thing, msgspec.Struct):
        fields = [each for each in msgspec.structs.fields(thing) if not each.name.startswith("_")]
        rows = [[f"`{f.name}`", f"`{type_text(f.type)}`", _field_default(f)] for f in fields]
        yield from table(["field", "type", "default"], rows)
    elif "__init__" in vars(thing) and thing not in MADE_FOR_YOU:
        yield ""
        yield calls(title, thing.__init__)
    elif hasattr(thing, "__members__"):
        yield ""
        yield ", ".join(f"`{each}`" for each in thing.__members__.values())
    yield ""
    members = _members(thing)
    public = {name: each for name, each in members.items() if not name.startswith("_")}
    twins = {each._method.__name__: name for name, each in public.items() if isinstance(each, blocking)}
    for name, member in members.items():
        if not name.startswith("_") and name not in INTERNAL:
            yield from _member(name, member, twins.get(name))


def _members(thing: type) -> dict[str, Any]:
    """Its own, and those that it inherits from a class of ours."""
    ours = [each for each in thing.__mro__ if each.__module__.startswith("windlass.")]
    found: dict[str, Any] = {}
    for each in ours:
        found = {**{name: member for name, member in vars(each).items() if name not in found}, **found}
    return found


def _member(name: str, member: Any, twin: str | None) -> Iterator[str]:
    if isinstance(member, property):
        yield f"- `.{name}`: {_prose(member)}"
    elif twin is not None:
        yield f"- {calls(f'.{twin}', member)}, `await .{name}(…)`: {_prose(member)}"
    elif isinstance(member, classmethod):
        yield f"- {calls(f'App.{name}', member.__func__)}: {_prose(member)}"
    elif inspect.isfunction(member):
        call = "await " if inspect.iscoroutinefunction(member) else ""
        yield f"- {calls(f'{call}.{name}', member)}: {_prose(member)}"


def _field_default(field: Any) -> str:
    if field.default is not msgspec.NODEFAULT:
        return f"`{field.default!r}`"
    return "required" if field.default_factory is msgspec.NODEFAULT else f"`{field.default_factory()!r}`"


FACES = {
    Jobs: "app.jobs",
    Queues: "app.queues",
    Schedules: "app.schedules",
    Workers: "app.workers",
    Stats: "app.stats",
    Actions: "app.actions",
    Tokens: "app.tokens",
    Webhooks: "app.webhooks",
    Audit: "app.audit",
}
MODULES = {
    fresh_connections: "windlass.contrib.django",
    **dict.fromkeys((trace_jobs, measure_jobs), "windlass.contrib.otel"),
    report_to_sentry: "windlass.contrib.sentry",
    **dict.fromkeys((asgi, wsgi), "windlass.server"),
}
"""Functions that are imported from a module of their own."""
MADE_FOR_YOU = (
    *(testing.RecordedContext, windlass.Backoff, windlass.Context, windlass.ContextTask),
    *(windlass.Handle, windlass.State, windlass.Task, *FACES),
)
"""Programs do not call these classes; the app does."""
INTERNAL = (
    *("adopt", "declare", "definition", "link", "offload", "payload_limit"),
    *("amark_used", "averify_digest", "mark_used", "verify_digest"),
)
"""What the parts of Windlass call of each other: no promise to users."""

# Redis.


def redis_keys_page() -> Iterator[str]:
    """Everything that is kept in Redis, by name."""
    yield "# Keys in Redis"
    yield ""
    yield (
        "Read them, but change nothing: indexes and counters must agree with records, which only scripts ensure. "
        "`windlass doctor --deep` recounts it. Moments are microseconds since 1970. The number of keys does not "
        "depend on the number of jobs. A *zset, by member* has all scores 0 and is sorted by what its members begin "
        "with."
    )
    for title, tag, keys in (
        ("Of a queue", "queue", QUEUE_KEYS),
        ("Of no queue", GLOBAL, GLOBAL_KEYS),
    ):
        yield ""
        yield f"## {title}"
        yield ""
        yield f"`{DEFAULT_PREFIX}:{{{tag}}}:key`; the part in braces is what a cluster finds the slot by."
        rows = [[f"`{name}`", *said.split(": ", 1)] for name, said in keys.items()]
        yield from table(["key", "kind", "holds"], rows)
    yield f"`{DEFAULT_PREFIX}:{{queue}}:hints` is a channel: scripts publish there that a queue has work."
    yield from _redis_user()


def _redis_user() -> Iterator[str]:
    """The recipe for a user with the fewest rights."""
    yield ""
    yield "## A user with the fewest rights"
    yield ""
    yield "As one line for `redis-cli`, or without its first two words as a line `user …` of the server's ACL file:"
    yield ""
    yield "```text"
    yield from wrap(f"ACL SETUSER windlass on >password {' '.join(acl_rules())}", 110, break_on_hyphens=False)
    yield "```"
    yield ""
    words = " ".join(f"+{word}" for word in SHARDED)
    yield f"On a cluster of Redis 7 or later add `{words}`: hints then stay on the server that keeps the queue."
    yield "Without these rights they go to all servers of the cluster; everything else is the same."


PAGES: dict[str, Callable[[], Iterator[str]]] = {
    "cli": cli_page,
    "errors": errors_page,
    "events": events_page,
    "settings": settings_page,
    "python": python_page,
    "testing": testing_page,
    "redis-keys": redis_keys_page,
}

if __name__ == "__main__":
    sys.exit(main())
