"""From `module:object` to an app."""

import importlib
import os
import sys
import traceback

import windlass
from windlass.client.app import App
from windlass.client.runtime.settings import current_folder
from windlass.errors import ConfigError, WindlassError
from windlass.native import require_threads
from windlass.worker.handlers.job_logging import add_job_to_records


def import_trouble(path: str, error: BaseException) -> str:
    """The traceback of a failed import, from the user's first frame on.

    A WindlassError without a frame of the user's is reported by its message alone.
    """
    frames = error.__traceback__
    while frames is not None and _is_machinery(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    if frames is None and isinstance(error, WindlassError):
        return str(error)
    if isinstance(error, ConfigError):
        # The message says what to change, so only the user's line is added.
        line = [frame for frame in traceback.extract_tb(frames) if not _is_machinery(frame.filename)][-1]
        return f"{error}\n({line.filename}, line {line.lineno}, while importing {path})"
    text = "".join(traceback.format_exception(type(error), error, frames, limit=-10))
    return f"importing {path} failed:\n{text}"


def _is_machinery(file: str) -> bool:
    return file.startswith(("<frozen importlib", *_MACHINERY))


_MACHINERY = (os.path.dirname(importlib.__file__) + os.sep, os.path.dirname(windlass.__file__) + os.sep)


def parse_path(path: str) -> tuple[str, str]:
    """The module and the name in it; raises ConfigError for text that cannot be such a path."""
    module_name, colon, name = path.partition(":")
    if not colon or not module_name or not name:
        raise ConfigError(f"{path!r} should be module:object, such as shop.jobs:app")
    if "/" in module_name or module_name.startswith(".") or module_name.endswith(".py"):
        hint = os.path.basename(module_name).removesuffix(".py")
        raise ConfigError(f"{module_name!r} is not a module name: go to its folder and write {hint}:{name}")
    return module_name, name


def load_app_for_work(path: str) -> App:
    """The app of a process that runs handlers, which needs real threads."""
    app = load_app(path)
    require_threads()
    return app


_loaded: dict[str, str | None] = {}


def loaded_in() -> str | None:
    """The folder in which this process loaded its app, even if its code changed the folder since; None before
    that.
    """
    return _loaded.get("in")


def load_app(path: str) -> App:
    """Import the app. Errors of the user's own module are passed on as they are: their traceback helps."""
    module_name, name = parse_path(path)
    here = _loaded["in"] = current_folder()
    if here is not None and here not in sys.path:
        sys.path.insert(0, here)
    # Before the app sets up its logging: a format that names the job must find it in every record.
    add_job_to_records()
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise
        raise ConfigError(
            f"there is no module {module_name!r} here ({here or 'a folder that was removed'}) or on the import path"
        ) from None
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"module {module_name!r} has no {name!r}; it should be `{name} = windlass.App(...)`")
        found = getattr(found, part)
    if not isinstance(found, App):
        raise ConfigError(f"{path} is {type(found).__name__}, not a windlass.App")
    return found
