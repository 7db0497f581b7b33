"""How commands find a store: the options that many of them share."""

import os
from typing import Annotated, Any

import typer

from windlass.blobs.open import BLOBS_VARIABLE
from windlass.cli.output.advice import Advice
from windlass.client.app import App
from windlass.client.runtime.location import APP_VARIABLE, GIVEN, STORE_VARIABLE, empty
from windlass.client.runtime.settings import current_folder, read_settings
from windlass.client.verbs.audit import process_actor
from windlass.errors import ConfigError
from windlass.observe.logs import LOG_FORMAT_VARIABLE
from windlass.store.open import missing
from windlass.worker.config import WorkerConfig
from windlass.worker.load import import_trouble, load_app

SERVER_VARIABLE = "WINDLASS_SERVER"
_ADVICE = 'name one: --store sqlite:///jobs.db,{app} WINDLASS_STORE, or store = "sqlite:///jobs.db" in windlass.toml'


def _written(context: typer.Context, parameter: typer.CallbackParam, value: str | None) -> str | None:
    """The value from the command line alone: among variables that of the app comes first."""
    source = context.get_parameter_source(parameter.name or "")
    return None if source is not None and source.name == "ENVIRONMENT" else value


StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        "--server",
        envvar=STORE_VARIABLE,
        callback=_written,
        help="Address of the store: sqlite:///jobs.db, postgresql://host/jobs, redis://host/0; or of a REST server: "
        "https://jobs.example.com, with its token in WINDLASS_TOKEN.",
    ),
]
OwnStoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar=STORE_VARIABLE,
        callback=_written,
        help="Address of the store: sqlite:///jobs.db, postgresql://host/jobs, redis://host/0. This command needs "
        "the store itself, not a REST server.",
    ),
]
BlobsOption = Annotated[
    str | None,
    typer.Option(
        "--blobs",
        envvar=BLOBS_VARIABLE,
        callback=_written,
        help="Folder of offloaded payloads and results (over 64 KiB).",
    ),
]
AppOption = Annotated[
    str | None,
    typer.Option(
        "--app",
        envvar=APP_VARIABLE,
        help="Where your App is, such as shop:app; its store is used, its tasks check payloads.",
    ),
]
AppArgument = Annotated[
    str | None, typer.Argument(metavar="[APP]", help="Where your App is, such as shop:app; or --app.")
]
WorkAppOption = Annotated[
    str | None, typer.Option("--app", envvar=APP_VARIABLE, help="Where your App is: the same as the argument.")
]
ServerOption = Annotated[
    str | None,
    typer.Option(
        "--server",
        envvar=SERVER_VARIABLE,
        help="Work through a REST server, with its token in WINDLASS_TOKEN: for machines that may not reach the "
        "store. The server decides how long the lease is.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON for programs instead of a table.")]


def reach(
    store: str | None,
    app: str | None = None,
    *,
    blobs: str | None = None,
    make: bool = False,
    looks: bool = False,
    default: bool = False,
    takes_app: bool = True,
    through_server: bool = True,
) -> App:
    """The named app on the named store; both by the rule of `client/runtime/location.py`.

    Only commands that `make` something may create a store, and only a named one: a command that only reads reports a
    mistyped address. One that `looks` writes no declarations of the app. With `default`, the default store of the app
    counts as named. A command that `takes_app` has the option --app; one that goes `through_server` may be given a
    server instead of a store.
    """
    if through_server and (server := _server(store)) is not None:
        return _remote(server)
    home = find(store, app, blobs=blobs)
    home._declares = not looks
    # Always checked: an address that no command can reach is refused, such as that of an app for tests.
    found, absence = home._location.store, missing(home.store)
    if absence is None or (make and (found.named or default)):
        return home
    if not found.named:
        nor = f", {app} names none" if app else ""
        advice = _ADVICE.format(app=" --app module:object," if takes_app else "")
        raise ConfigError(
            [f"there is no store: none was named, and {absence}", f"{home._location.searched}{nor}", advice]
        )
    advice = Advice(store, app)("; a worker makes it, or: windlass migrate") if app else ""
    raise ConfigError(f"there is no store: {absence} ({rule_of(home, store, app)}){advice}")


def look(store: str | None, app: str | None = None, *, through_server: bool = True) -> App:
    """As `reach`, for a command that only reads: it does not write the app's declarations to the store."""
    return reach(store, app, looks=True, through_server=through_server)


def named_app(context: typer.Context, argument: str | None, option: str | None) -> str | None:
    """The app: the argument or --app, else the variable."""
    source = context.get_parameter_source("option")
    if argument is not None and option is not None and source is not None and source.name != "ENVIRONMENT":
        raise typer.BadParameter(f"--app {option}: the app is named already, {argument}")
    return argument if argument is not None else option


def app_to_work(context: typer.Context, argument: str | None, option: str | None) -> str:
    """The app of a worker, which needs one."""
    if (found := named_app(context, argument, option)) is None:
        raise typer.BadParameter(f"name your app: windlass {context.info_name} shop:app, or {APP_VARIABLE}")
    return found


def server_to_work(context: typer.Context, server: str | None) -> str:
    """The server that a worker goes through; empty: it has a store. What only a store offers is refused."""
    if server is None:
        return ""
    if not server.strip():
        raise ConfigError(empty(SERVER_VARIABLE))
    if not is_server(server):
        raise ConfigError(f"--server {server}: should be a URL such as https://jobs.example.com")
    for name, advice in (("lease", "the server decides it: windlass serve --worker-lease"), ("until_empty", "")):
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            reason = advice or "it needs the store itself"
            raise ConfigError(f"--{name.replace('_', '-')} cannot be used with --server: {reason}")
    return server.rstrip("/")


def _server(store: str | None) -> str | None:
    """The REST server that is named instead of a store, if one is."""
    flag = _flag(store)
    if flag is not None:
        return flag if is_server(flag) else None
    named = os.environ.get(SERVER_VARIABLE)
    if named is not None and not named.strip():
        raise ConfigError(empty(SERVER_VARIABLE))
    return named


def is_server(address: str) -> bool:
    """Whether an address is that of a REST server."""
    return address.startswith(("http://", "https://"))


def _remote(server: str) -> App:
    try:
        from windlass.remote import RemoteApp
    except ModuleNotFoundError as error:
        raise ConfigError(f"--server needs {error.name}: pip install 'windlass[remote]'") from None
    return RemoteApp(server)


def find(store: str | None, app: str | None = None, *, blobs: str | None = None) -> App:
    """The same, whether there is a store or not."""
    flag = _flag(store)
    if flag is not None and is_server(flag):
        raise ConfigError(f"{flag} is a REST server, and this command needs the store itself: use --store or --app")
    if app is None:
        if flag is None and os.environ.get(APP_VARIABLE) == "":
            raise ConfigError(empty(APP_VARIABLE))
        home = App(flag, blobs=_flag(blobs, "--blobs"))
        home.actor = process_actor("cli")
        return home
    home = _load(app)
    if flag is not None:
        home._relocate(flag)
    home.actor = process_actor("cli")
    return home


def rule_of(home: App, store: str | None, app: str | None) -> str:
    """How the store was found, for people."""
    found = home._location.store
    if _flag(store) is not None:
        return "named by --store"
    if not found.named:
        return "the default: nothing names a store"
    return f"named by {app if app and found.rule == GIVEN else found.rule}"


def _flag(value: str | None, name: str = "--store") -> str | None:
    """What was given on the command line, unless it is empty."""
    if value is not None and not value.strip():
        raise ConfigError(empty(name))
    return value


def _load(path: str) -> App:
    """The app; errors of its module are shown without Windlass's frames."""
    try:
        return load_app(path)
    except (Exception, SystemExit) as error:
        raise ConfigError(import_trouble(path, error)) from None


def worker_settings() -> dict[str, Any]:
    """The [worker] table of the settings file: option names without dashes."""
    settings = read_settings(current_folder())
    table, options = settings.table("worker"), {*WorkerConfig.__struct_fields__} - {"app", "token"}
    if unknown := sorted(table.keys() - options):
        known = ", ".join(sorted(options))
        raise ConfigError(
            [f"{settings.path}: unknown worker setting {name!r}; there are {known}" for name in unknown]
        )
    return table


def log_settings() -> dict[str, str]:
    """`log_format` of the settings file, for commands that log."""
    found = read_settings(current_folder()).text("log_format")
    return {} if found is None else {"log_format": found}


LogFormatOption = Annotated[
    str,
    typer.Option("--log-format", envvar=LOG_FORMAT_VARIABLE, help="Lines on standard error: text, json or logfmt."),
]
