"""The modules that the handler processes of an embedded worker import to have its app and its tasks."""

import sys

import msgspec

from windlass.client.app import App
from windlass.errors import ConfigError
from windlass.worker.config import WorkerConfig

PROGRAM = "__main__"


def with_imports(app: App, config: WorkerConfig) -> WorkerConfig:
    """The settings, with the app and the modules to import; raises ConfigError."""
    if app._store_handle.clock is not None:
        raise ConfigError(f"{app!r} is under test: windlass.testing.arun_all(app) runs its jobs")
    names = {
        module: name
        for module, loaded in list(sys.modules.items())
        for name, value in list(getattr(loaded, "__dict__", {}).items())
        if value is app and module != PROGRAM
    }
    for definition in app.registry:
        if definition.in_process and (not names or definition.function.__module__ == PROGRAM):
            raise ConfigError(
                f"task {definition.type!r} has run_in='process', and no other process can import it and its app from "
                "the program or notebook: move both into a module"
            )
    tasks = [definition.function.__module__ for definition in app.registry]
    modules = dict.fromkeys([*names, *(each for each in tasks if each != PROGRAM and each in sys.modules)])
    path = next((f"{module}:{name}" for module, name in names.items()), "")
    return msgspec.structs.replace(config, app=path, modules=tuple(modules) if path else ())
