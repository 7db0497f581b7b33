"""From an address to a store: the only module that names the stores."""

import asyncio
import re
from pathlib import PurePosixPath
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from windlass.errors import ConfigError, InvalidOption
from windlass.store.clock import Clock, SystemClock
from windlass.store.contract import Store
from windlass.store.doctor import Examination
from windlass.store.records import ProcessRole

_PASSWORD = re.compile(r"((?:password|token|secret)=)[^&#]*", re.IGNORECASE)
POSTGRES = ("postgresql", "postgres", "yugabyte")
REDIS = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
_SQLALCHEMY = re.compile(r"(?P<store>postgres(?:ql)?)\+(?P<driver>\w+):|(?P<file>sqlite)\+(?:pysqlite|aiosqlite):")
_RELATIVE_FILE = re.compile(r"sqlite:///(?![/~?#]|:memory:)(?P<path>[^?#]+)(?P<options>.*)", re.DOTALL)
DEFAULT_ADDRESS = "sqlite:///windlass.db"
MEMORY_ADDRESS = "sqlite:///:memory:"
"""Shown, but never opened by its name: a job enqueued there by mistake would be lost with the process."""


def open_store(
    url: str, *, clock: Clock | None = None, opener: ProcessRole = ProcessRole.CLIENT, deadline: float | None = None
) -> Store:
    """Open the store at `url`. Nothing here blocks for long; the first verb connects."""
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        # Imported here, so that a program loads only the store that it uses.
        from windlass.store.sqlite.address import parse_address
        from windlass.store.sqlite.connection.database import FileDatabase
        from windlass.store.sqlite.store import SqliteStore

        first = opener in (ProcessRole.SUPERVISOR, ProcessRole.COORDINATOR)
        database = FileDatabase(parse_address(url, redact(url)), first=first)
        return SqliteStore(database, clock=clock, deadline=deadline)
    if scheme in POSTGRES:
        try:
            from windlass.store.postgres.connection.address import parse_address as parse_postgres
            from windlass.store.postgres.store import PostgresStore
        except ImportError as error:
            raise _not_installed(url, error) from error

        shown = redact(url)
        return PostgresStore(parse_postgres(url, shown), shown, clock=clock, opener=opener, deadline=deadline)
    if scheme in REDIS:
        try:
            from windlass.store.redis.connection.address import parse_address as parse_redis
            from windlass.store.redis.store import RedisStore
        except ImportError as error:
            raise _not_installed(url, error, "redis") from error

        shown = redact(url)
        return RedisStore(parse_redis(url, shown), shown, clock=clock, opener=opener, deadline=deadline)
    raise _unknown(url)


async def examine(url: str, *, clock: Clock | None = None, deep: bool = False) -> Examination:
    """Examine the store at `url` without opening it: nothing is created, migrated or changed.

    Part of the contract: every store has one. Whatever is wrong with the store is a finding, never an error; only an
    address that names no store raises ConfigError. The census comes from one cheap snapshot; `deep` may take long.
    """
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        from windlass.store.sqlite.address import parse_address
        from windlass.store.sqlite.doctor.examine import examine as examine_file

        address = parse_address(url, redact(url))
        return await asyncio.to_thread(examine_file, address, clock or SystemClock(), deep=deep)
    if scheme in POSTGRES:
        try:
            from windlass.store.postgres.connection.address import parse_address as parse_postgres
            from windlass.store.postgres.doctor.examine import examine as examine_server
        except ImportError as error:
            raise _not_installed(url, error) from error

        return await examine_server(parse_postgres(url, redact(url)), redact(url), clock, deep=deep)
    if scheme in REDIS:
        try:
            from windlass.store.redis.connection.address import parse_address as parse_redis
            from windlass.store.redis.doctor.examine import examine as examine_redis
        except ImportError as error:
            raise _not_installed(url, error, "redis") from error

        return await examine_redis(parse_redis(url, redact(url)), redact(url), clock, deep=deep)
    raise _unknown(url)


def apart(url: str, name: str) -> str | None:
    """The address of separate tables or keys on the same server; None for a file, or if the address names a schema or
    prefix.
    """
    scheme = url.partition(":")[0]
    option = "schema" if scheme in POSTGRES else "prefix" if scheme in REDIS else None
    if option is None or f"{option}=" in url:
        return None
    return f"{url}{'&' if '?' in url else '?'}{option}={name}"


async def discard(url: str) -> None:
    """Remove the tables or keys that were made `apart`, with their content."""
    if url.partition(":")[0] in REDIS:
        from windlass.store.redis.connection.address import parse_address as parse_redis
        from windlass.store.redis.store import discard as discard_prefix

        await discard_prefix(parse_redis(url, redact(url)), redact(url))
        return
    from windlass.store.postgres.connection.address import parse_address as parse_postgres
    from windlass.store.postgres.store import discard as discard_schema

    await discard_schema(parse_postgres(url, redact(url)), redact(url))


async def raise_buckets(url: str, buckets: int) -> int:
    """Give the store at `url` more buckets; returns how many it had. Only YugabyteDB has any."""
    if url.partition(":")[0] not in POSTGRES:
        raise InvalidOption("buckets", "exist on yugabyte:// only")
    from windlass.store.postgres.connection.address import parse_address as parse_postgres
    from windlass.store.postgres.verbs.raise_buckets import raise_buckets as raise_in_schema

    return await raise_in_schema(parse_postgres(url, redact(url)), redact(url), buckets)


def _not_installed(url: str, error: ImportError, extra: str = "postgres") -> ConfigError:
    return ConfigError(f"{redact(url)}: pip install 'windlass[{extra}]' first ({error})")


def _unknown(url: str) -> ConfigError:
    scheme, colon, _ = url.partition(":")
    if not colon:
        return ConfigError(
            f"{redact(url)} is not the address of a store: for an SQLite file, write sqlite:///{redact(url)}"
        )
    if scheme in ("http", "https"):
        return ConfigError(f"{redact(url)} is a REST server, not a store: use windlass.remote.RemoteApp for it")
    known = (
        "sqlite:///file.db, postgresql://user@host/database, yugabyte://user@host/database and redis://host:6379/0, "
        "or SQLAlchemy's spelling"
    )
    return ConfigError(f"{redact(url)}: unknown store {scheme!r}; this version has {known}")


def plain(url: str) -> str:
    """The address without what only SQLAlchemy understands: the driver, `ssl=` of asyncpg, `host=` as an option."""
    match = _SQLALCHEMY.match(url)
    if match is not None:
        url = f"{match['store'] or match['file']}:{url[match.end() :]}"
    options_may_differ = match is not None or "host=" in url
    if url.partition(":")[0] not in POSTGRES or not options_may_differ:
        return url
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    options = parse_qsl(parts.query, keep_blank_values=True)
    if match is not None and match["driver"] == "asyncpg":
        options = [("sslmode" if name == "ssl" else name, value) for name, value in options]
    hosts = [quote(value, safe=":") for name, value in options if name == "host"]
    if hosts and not parts.netloc.rpartition("@")[2]:
        ports = [value for name, value in options if name == "port"]
        parts = parts._replace(netloc=parts.netloc + ",".join(hosts) + "".join(f":{port}" for port in ports))
        options = [(name, value) for name, value in options if name not in ("host", "port")]
    return urlunsplit(parts._replace(query=urlencode(options, quote_via=quote)))


def absolute(url: str, folder: str | None) -> str:
    """The address as Windlass writes it, with a relative path joined to `folder`.

    An invalid address is returned unchanged: opening it reports the error.
    """
    url = plain(url)
    match = _RELATIVE_FILE.fullmatch(url)
    if match is None:
        return url
    if folder is None:
        raise ConfigError(f"{redact(url)} is relative, and the current folder was removed; write an absolute address")
    written = unquote(match["path"], errors="surrogateescape")
    path = str(PurePosixPath(folder, written)) + ("/" if written.endswith("/") else "")
    return f"sqlite:///{quote(path, errors='surrogateescape')}{match['options']}"


def open_memory(*, clock: Clock | None = None, deadline: float | None = None) -> Store:
    """A new store in the memory of this process, for tests; callers' transactions are on databases of their own."""
    from windlass.store.memory.store import MemoryStore

    return MemoryStore(clock=clock, deadline=deadline)


def missing(url: str) -> str | None:
    """What is missing at `url`, as far as is known without opening it."""
    if not url.startswith("sqlite:"):
        return None
    from windlass.store.sqlite.address import parse_address

    try:
        path = parse_address(url, redact(url)).path
        return None if path.exists() else f"no such file: {path}"
    except PermissionError:
        return None  # an inaccessible folder: opening the store reports it


def redact(url: str) -> str:
    """An address without its password, for logs and errors."""
    url = _PASSWORD.sub(r"\1***", url)
    head, at, host = url.rpartition("@")
    if not at or url.startswith("sqlite:///"):  # a path may have an @
        return url
    scheme, separator, credentials = head.rpartition("://")
    user = credentials.partition(":")[0]
    return f"{scheme}{separator}{user}:***@{host}"
