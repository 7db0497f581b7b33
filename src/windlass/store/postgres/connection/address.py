"""postgresql://user@host/database and its options."""

import re
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import msgspec

from windlass.errors import ConfigError

DEFAULT_SCHEMA = "windlass"
OPTIONS = ("schema", "notify", "connections")
LIBPQ = (
    "gsslib",
    "krbsrvname",
    "passfile",
    "sslcert",
    "sslcrl",
    "sslkey",
    "sslmode",
    "sslnegotiation",
    "sslpassword",
    "sslrootcert",
    "target_session_attrs",
)
"""Passed on to the driver, which takes other libpq options for server settings."""
MAX_CONNECTIONS = 50
MAX_SCHEMA_LENGTH = 50
"""PostgreSQL allows 63; the channel of the hints contains the schema's name."""
_SCHEMA = re.compile(rf"[a-z_][a-z0-9_]{{0,{MAX_SCHEMA_LENGTH - 1}}}")


class Address(msgspec.Struct, frozen=True):
    """Where the server is, which schema to use, and how to connect."""

    dsn: str
    """For the driver: with the password, without our options."""
    schema: str = DEFAULT_SCHEMA
    notify: bool = True
    connections: int | None = None

    @property
    def hosts(self) -> list[str]:
        """One address per host."""
        parts = urlsplit(self.dsn)
        user, at, hosts = parts.netloc.rpartition("@")
        if "," not in hosts:
            return [self.dsn]
        return [urlunsplit(parts._replace(netloc=f"{user}{at}{host}")) for host in hosts.split(",")]

    @property
    def url(self) -> str:
        """The whole address, for another process."""
        options = {} if self.schema == DEFAULT_SCHEMA else {"schema": self.schema}
        if not self.notify:
            options["notify"] = "off"
        if self.connections is not None:
            options["connections"] = str(self.connections)
        if not options:
            return self.dsn
        return self.dsn + ("&" if "?" in self.dsn else "?") + urlencode(options)


def parse_address(url: str, shown: str) -> Address:
    """The parsed address, or a ConfigError with all problems; `shown` is the address without secrets."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    problems = []
    schema = options.pop("schema", DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_") or schema == "information_schema":
        problems.append(
            f"{shown}: schema is up to {MAX_SCHEMA_LENGTH} small letters, digits and underscores, not beginning with "
            "a "
            f"digit or pg_, not {schema!r}"
        )
    notify = options.pop("notify", "on")
    if notify not in ("on", "off"):
        problems.append(f"{shown}: notify is on or off, not {notify!r}")
    connections = options.pop("connections", None)
    if connections is not None and not (connections.isdecimal() and 1 <= int(connections) <= MAX_CONNECTIONS):
        problems.append(f"{shown}: connections is a number from 1 to {MAX_CONNECTIONS}, not {connections!r}")
    if not parts.path.strip("/"):
        problems.append(f"{shown}: names no database; write postgresql://user@host/database")
    if parts.fragment:
        problems.append(f"{shown}: a # in a name or password must be written %23")
    known = ", ".join((*OPTIONS, *LIBPQ))
    problems += [f"{shown}: unknown option {name!r}; there are {known}" for name in options if name not in LIBPQ]
    if problems:
        raise ConfigError(problems)
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in options.items())
    dsn = f"postgresql://{parts.netloc}{parts.path}" + (f"?{query}" if query else "")
    return Address(dsn, schema, notify == "on", None if connections is None else int(connections))
