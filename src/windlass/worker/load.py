"""From `module:object` to an app."""

import importlib
import os
import sys

from windlass.client.app import App
from windlass.errors import ConfigError


def load_app(path: str) -> App:
    """Import the app. Errors of the user's own module are passed on as they are: their traceback helps."""
    module_name, colon, name = path.partition(":")
    if not colon or not module_name or not name:
        raise ConfigError(f"{path!r} should be module:object, such as shop.jobs:app")
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not (module_name + ".").startswith(error.name + "."):
            raise
        raise ConfigError(f"there is no module {module_name!r} here ({here}) or on the import path") from None
    found = module
    for part in name.split("."):
        if not hasattr(found, part):
            raise ConfigError(f"module {module_name!r} has no {name!r}; it should be `{name} = windlass.App(...)`")
        found = getattr(found, part)
    if not isinstance(found, App):
        raise ConfigError(f"{path} is {type(found).__name__}, not a windlass.App")
    return found
