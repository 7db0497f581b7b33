"""How commands reach a store: options that many of them share, and the settings file."""

import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from windlass.client.app import App
from windlass.errors import ConfigError
from windlass.worker.load import load_app

StoreOption = Annotated[
    str | None,
    typer.Option("--store", envvar="WINDLASS_STORE", help="Address of the store, such as sqlite:///jobs.db."),
]
AppOption = Annotated[
    str | None,
    typer.Option("--app", envvar="WINDLASS_APP", help="module:object; its store is used, its tasks check payloads."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON for programs instead of a table.")]


def reach(store: str | None, app: str | None = None) -> App:
    """The app named, else an app without tasks on the store named, else what the settings file says."""
    if app is not None:
        return load_app(app)
    return App(store or read_settings().get("store"))


def read_settings(folder: Path | None = None) -> dict[str, Any]:
    """windlass.toml, else [tool.windlass] in pyproject.toml, in the current folder; empty without either."""
    folder = folder or Path.cwd()
    own, project = folder / "windlass.toml", folder / "pyproject.toml"
    if own.exists():
        return _parse(own)
    if project.exists():
        settings: dict[str, Any] = _parse(project).get("tool", {}).get("windlass", {})
        return settings
    return {}


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None
