"""An app behind a REST server: the face of `App` for programs without access to the store."""

from windlass.remote.app import RemoteApp

__all__ = ["RemoteApp"]
