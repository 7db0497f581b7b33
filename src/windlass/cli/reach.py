"""How commands reach a store: options that many of them share, and the settings file."""

import os
import tomllib
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from windlass.blobs.open import BLOBS_VARIABLE
from windlass.client.app import App
from windlass.errors import ConfigError
from windlass.store.open import missing, redact
from windlass.worker.config import WorkerConfig
from windlass.worker.load import import_trouble, load_app

T = TypeVar("T", str, dict[str, Any])

_SETTINGS = ("store", "blobs", "worker")
_ADVICE = (
    'say --store or --app, set WINDLASS_STORE or WINDLASS_APP, or write store = "sqlite:///…" into windlass.toml'
)
_TOML = {str: "string", dict: "table"}

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        envvar="WINDLASS_STORE",
        help="Address of the store: sqlite:///jobs.db, postgresql://host/jobs, redis://host/0, …",
    ),
]
BlobsOption = Annotated[
    str | None,
    typer.Option("--blobs", envvar=BLOBS_VARIABLE, help="Folder of payloads and results over 64 KiB, to clear."),
]
AppOption = Annotated[
    str | None,
    typer.Option(
        "--app",
        envvar="WINDLASS_APP",
        help="Where your App is, such as shop:app; its store is used, its tasks check payloads.",
    ),
]
AppArgument = Annotated[
    str, typer.Argument(metavar="APP", envvar="WINDLASS_APP", help="Where your App is, such as shop:app.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON for programs instead of a table.")]


def reach(store: str | None, app: str | None = None, *, blobs: str | None = None, make: bool = False) -> App:
    """The app named, else an app without tasks on the store named, else what the settings file says.

    Only commands that `make` something may make a store: whoever only looks at one that is not there has
    mistyped its address.
    """
    if app is not None:
        home = _load(app)
        if store is not None and store != home.store:
            typer.echo(f"note: using the store of {app}, {redact(home.store)}, not {redact(store)}", err=True)
    else:
        settings = read_settings()
        blobs = blobs or os.environ.get(BLOBS_VARIABLE) or _stated(settings, "blobs", str)
        store = store or _stated(settings, "store", str)
        home = App(store, blobs=blobs)
    # Asked in any case: an address that no command can reach is refused, such as that of an app made for tests.
    absence = missing(home.store)
    if absence is not None and not make:
        advice = f"{absence}; a worker makes it, or: windlass migrate" if app else absence if store else _ADVICE
        raise ConfigError(f"there is no store at {redact(home.store)}: {advice}")
    return home


def _load(path: str) -> App:
    """The app; what its module raises is shown as a worker shows it, without our own frames."""
    try:
        return load_app(path)
    except (Exception, SystemExit) as error:
        raise ConfigError(import_trouble(path, error)) from None


def read_settings(folder: Path | None = None) -> dict[str, Any]:
    """windlass.toml, else [tool.windlass] in pyproject.toml, in the current folder; empty without either."""
    folder = folder or Path.cwd()
    own, project = folder / "windlass.toml", folder / "pyproject.toml"
    if own.exists():
        return _known(_parse(own), own)
    if project.exists():
        return _known(_table(_table(_parse(project), "tool"), "windlass"), project)
    return {}


def _known(settings: dict[str, Any], path: Path) -> dict[str, Any]:
    """A misspelt setting must not be taken for none."""
    strange = [
        f"{path}: unknown setting {name!r}; there are {', '.join(_SETTINGS)}"
        for name in settings.keys() - set(_SETTINGS)
    ]
    options = {*WorkerConfig.__struct_fields__} - {"app"}
    strange += [
        f"{path}: unknown worker setting {name!r}; there are {', '.join(sorted(options))}"
        for name in _table(settings, "worker").keys() - options
    ]
    if strange:
        raise ConfigError(strange)
    return settings


def worker_settings() -> dict[str, Any]:
    """The [worker] table of the settings file: option names without their dashes."""
    return _table(read_settings(), "worker")


def _table(settings: dict[str, Any], name: str) -> dict[str, Any]:
    return _stated(settings, name, dict) or {}


def _stated(settings: dict[str, Any], name: str, kind: type[T]) -> T | None:
    found = settings.get(name)
    if found is not None and not isinstance(found, kind):
        raise ConfigError(f"settings: {name} should be a {_TOML[kind]}, not {found!r}")
    return found


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{path}: {error}") from None
