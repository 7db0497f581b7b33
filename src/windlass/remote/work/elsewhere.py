"""Verbs that a server does not offer to workers."""

from typing import Any

from windlass.errors import InvalidOption


class Elsewhere:
    """A role of a store whose missing verbs raise an error that names the server."""

    def __init__(self, server: str) -> None:
        self._server = server

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise InvalidOption("server", f"{name} needs the store itself, and {self._server} is a server")
