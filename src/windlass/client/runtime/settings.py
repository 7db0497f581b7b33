"""The settings file of a folder: windlass.toml, else [tool.windlass] in pyproject.toml."""

import os
import tomllib
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from windlass.errors import ConfigError

T = TypeVar("T", str, dict[str, Any])

FILES = ("windlass.toml", "pyproject.toml")
_TEXTS = ("store", "blobs", "log_format", "webhook_networks")
_KNOWN = (*_TEXTS, "worker")
_TOML = {str: "string", dict: "table"}


class Settings(msgspec.Struct, frozen=True):
    """The content and path of a settings file; empty without one."""

    path: Path | None = None
    values: dict[str, Any] = {}

    def text(self, name: str) -> str | None:
        return stated(self.values, name, str)

    def table(self, name: str) -> dict[str, Any]:
        return stated(self.values, name, dict) or {}


def current_folder() -> str | None:
    """The current folder; None if it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return None


def read_settings(folder: str | None) -> Settings:
    """The settings of a folder. A windlass.toml hides pyproject.toml."""
    if folder is None:
        return Settings()
    own, project = (Path(folder, name) for name in FILES)
    if own.exists():
        return Settings(own, _checked(_parse(own), own))
    if project.exists():
        tool = stated(_parse(project), "tool", dict) or {}
        return Settings(project, _checked(stated(tool, "windlass", dict) or {}, project))
    return Settings()


def stated(settings: dict[str, Any], name: str, kind: type[T]) -> T | None:
    """A setting of this type; None if absent."""
    found = settings.get(name)
    if found is not None and not isinstance(found, kind):
        raise ConfigError(f"settings: {name} should be a {_TOML[kind]}, not {found!r}")
    return found


def _checked(settings: dict[str, Any], path: Path) -> dict[str, Any]:
    """Refuse unknown settings, which may be misspelt."""
    for name in _TEXTS:
        stated(settings, name, str)
    stated(settings, "worker", dict)
    unknown = sorted(settings.keys() - set(_KNOWN))
    if unknown:
        raise ConfigError([f"{path}: unknown setting {name!r}; there are {', '.join(_KNOWN)}" for name in unknown])
    return settings


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise ConfigError(f"{path}: {error}") from None
