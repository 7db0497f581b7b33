"""From an address to a store: the only place that knows which stores there are."""

from windlass.errors import ConfigError
from windlass.store.clock import Clock
from windlass.store.contract import Store

DEFAULT_ADDRESS = "sqlite:///windlass.db"


def open_store(url: str, *, clock: Clock | None = None, first: bool = False, deadline: float | None = None) -> Store:
    """Open the store at `url`. No I/O that can fail for long happens here; the first verb connects."""
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        # Imported here, so that a program pays only for the store that it uses.
        from windlass.store.sqlite.address import parse_address
        from windlass.store.sqlite.store import SqliteStore

        return SqliteStore(parse_address(url), clock=clock, first=first, deadline=deadline)
    raise ConfigError(f"{redact(url)}: unknown store {scheme!r}; this version has sqlite:///file.db")


def redact(url: str) -> str:
    """An address fit for logs and errors: no password, whatever its form."""
    head, at, host = url.rpartition("@")
    if not at:
        return url
    scheme, separator, credentials = head.rpartition("://")
    user = credentials.partition(":")[0]
    return f"{scheme}{separator}{user}:***@{host}"
