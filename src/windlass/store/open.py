"""From an address to a store: the only place that knows which stores there are."""

import asyncio
import re

from windlass.errors import ConfigError
from windlass.store.clock import Clock, SystemClock
from windlass.store.contract import Store
from windlass.store.examination import Examination
from windlass.store.opener import Opener

_PASSWORD = re.compile(r"((?:password|token|secret)=)[^&#]*", re.IGNORECASE)
POSTGRES = ("postgresql", "postgres")
REDIS = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
DEFAULT_ADDRESS = "sqlite:///windlass.db"
MEMORY_ADDRESS = "sqlite:///:memory:"
"""Shown, but never opened by its name: a job handed in there by mistake would be lost with the process."""


def open_store(
    url: str, *, clock: Clock | None = None, opener: Opener = Opener.CLIENT, deadline: float | None = None
) -> Store:
    """Open the store at `url`. No I/O that can fail for long happens here; the first verb connects."""
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        # Imported here, so that a program pays only for the store that it uses.
        from windlass.store.sqlite.address import parse_address
        from windlass.store.sqlite.site import FileSite
        from windlass.store.sqlite.store import SqliteStore

        first = opener in (Opener.SUPERVISOR, Opener.COORDINATOR)
        site = FileSite(parse_address(url, redact(url)), first=first)
        return SqliteStore(site, clock=clock, deadline=deadline)
    if scheme in POSTGRES:
        try:
            from windlass.store.postgres.address import parse_address as parse_postgres
            from windlass.store.postgres.store import PostgresStore
        except ImportError as error:
            raise _not_installed(url, error) from error

        shown = redact(url)
        return PostgresStore(parse_postgres(url, shown), shown, clock=clock, opener=opener, deadline=deadline)
    if scheme in REDIS:
        try:
            from windlass.store.redis.address import parse_address as parse_redis
            from windlass.store.redis.store import RedisStore
        except ImportError as error:
            raise _not_installed(url, error, "redis") from error

        shown = redact(url)
        return RedisStore(parse_redis(url, shown), shown, clock=clock, opener=opener, deadline=deadline)
    raise _unknown(url)


async def examine(url: str, *, clock: Clock | None = None, deep: bool = False) -> Examination:
    """Look at the store at `url` from outside: there or not, sound or not, nothing is made, migrated or changed.

    A part of the contract: every store has one. Whatever is wrong with the store is a finding, never an error; only
    an address that names no store raises ConfigError. The census comes from one snapshot and costs little, however
    many jobs there are; `deep` may take as long as it needs.
    """
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        from windlass.store.sqlite.address import parse_address
        from windlass.store.sqlite.examination.examine import examine as examine_file

        address = parse_address(url, redact(url))
        return await asyncio.to_thread(examine_file, address, clock or SystemClock(), deep=deep)
    if scheme in POSTGRES:
        try:
            from windlass.store.postgres.address import parse_address as parse_postgres
            from windlass.store.postgres.examination.examine import examine as examine_server
        except ImportError as error:
            raise _not_installed(url, error) from error

        return await examine_server(parse_postgres(url, redact(url)), redact(url), clock, deep=deep)
    if scheme in REDIS:
        try:
            from windlass.store.redis.address import parse_address as parse_redis
            from windlass.store.redis.examination.examine import examine as examine_redis
        except ImportError as error:
            raise _not_installed(url, error, "redis") from error

        return await examine_redis(parse_redis(url, redact(url)), redact(url), clock, deep=deep)
    raise _unknown(url)


def apart(url: str, name: str) -> str | None:
    """The address of tables or keys of one's own at the same server; None where there are none such, or some are
    named."""
    scheme = url.partition(":")[0]
    option = "schema" if scheme in POSTGRES else "prefix" if scheme in REDIS else None
    if option is None or f"{option}=" in url:
        return None
    return f"{url}{'&' if '?' in url else '?'}{option}={name}"


async def discard(url: str) -> None:
    """Remove the tables or keys that were made `apart`, with all that is in them."""
    if url.partition(":")[0] in REDIS:
        from windlass.store.redis.address import parse_address as parse_redis
        from windlass.store.redis.discard import discard as discard_prefix

        await discard_prefix(parse_redis(url, redact(url)), redact(url))
        return
    from windlass.store.postgres.address import parse_address as parse_postgres
    from windlass.store.postgres.discard import discard as discard_schema

    await discard_schema(parse_postgres(url, redact(url)), redact(url))


def _not_installed(url: str, error: ImportError, extra: str = "postgres") -> ConfigError:
    return ConfigError(f"{redact(url)}: pip install 'windlass[{extra}]' first ({error})")


def _unknown(url: str) -> ConfigError:
    scheme = url.partition(":")[0]
    known = "sqlite:///file.db, postgresql://user@host/database and redis://host:6379/0"
    return ConfigError(f"{redact(url)}: unknown store {scheme!r}; this version has {known}")


def open_memory(*, clock: Clock | None = None, deadline: float | None = None) -> Store:
    """A new store in the memory of this process, for tests: gone when it is closed, seen by nobody else."""
    from windlass.store.sqlite.memory import MemorySite
    from windlass.store.sqlite.store import SqliteStore

    return SqliteStore(MemorySite(), clock=clock, deadline=deadline)


def missing(url: str) -> str | None:
    """What there would be if there were a store at `url`, as far as that can be told without opening it."""
    if not url.startswith("sqlite:"):
        return None
    from windlass.store.sqlite.address import parse_address

    try:
        path = parse_address(url, redact(url)).path
        return None if path.exists() else f"no such file: {path}"
    except PermissionError:
        return None  # a folder that we may not enter: whoever opens the store says so


def redact(url: str) -> str:
    """An address fit for logs and errors: no password, whatever its form."""
    url = _PASSWORD.sub(r"\1***", url)
    head, at, host = url.rpartition("@")
    if not at:
        return url
    scheme, separator, credentials = head.rpartition("://")
    user = credentials.partition(":")[0]
    return f"{scheme}{separator}{user}:***@{host}"
