"""An app and a worker that use a REST server: for programs and machines without access to the store."""

try:
    from windlass.remote.app import RemoteApp
except ModuleNotFoundError as error:
    if error.name != "httpx":
        raise
    raise ModuleNotFoundError("windlass.remote needs httpx: pip install 'windlass[remote]'", name="httpx") from None
from windlass.remote.problems import RemoteRefused, TokenRefused
from windlass.remote.worker import Worker

__all__ = ["RemoteApp", "RemoteRefused", "TokenRefused", "Worker"]
