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
"""What is the driver's own business; it takes others of libpq's for settings of the server, which refuses them."""
MOST_CONNECTIONS = 50
LONGEST_SCHEMA = 50
"""Of 63 letters that a name may have there; the channel of the hints is called after the schema."""
_SCHEMA = re.compile(rf"[a-z_][a-z0-9_]{{0,{LONGEST_SCHEMA - 1}}}")


class Address(msgspec.Struct, frozen=True):
    """Where the server is, which schema holds the tables, and how it is talked to."""

    dsn: str
    """For the driver: with the password, without our own options."""
    schema: str = DEFAULT_SCHEMA
    notify: bool = True
    connections: int | None = None

    @property
    def hosts(self) -> list[str]:
        """The same address once for each of its hosts."""
        parts = urlsplit(self.dsn)
        user, at, hosts = parts.netloc.rpartition("@")
        if "," not in hosts:
            return [self.dsn]
        return [urlunsplit(parts._replace(netloc=f"{user}{at}{host}")) for host in hosts.split(",")]

    @property
    def url(self) -> str:
        """The whole address, as another process needs it."""
        options = {} if self.schema == DEFAULT_SCHEMA else {"schema": self.schema}
        if not self.notify:
            options["notify"] = "off"
        if self.connections is not None:
            options["connections"] = str(self.connections)
        if not options:
            return self.dsn
        return self.dsn + ("&" if "?" in self.dsn else "?") + urlencode(options)


def parse_address(url: str, shown: str) -> Address:
    """The address, or everything that is wrong with it; `shown` is how it may be called in an error."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    problems = []
    schema = options.pop("schema", DEFAULT_SCHEMA)
    if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_") or schema == "information_schema":
        problems.append(
            f"{shown}: schema is up to {LONGEST_SCHEMA} small letters, digits and underscores, not beginning with a "
            f"digit or pg_, not {schema!r}"
        )
    notify = options.pop("notify", "on")
    if notify not in ("on", "off"):
        problems.append(f"{shown}: notify is on or off, not {notify!r}")
    connections = options.pop("connections", None)
    if connections is not None and not (connections.isdecimal() and 1 <= int(connections) <= MOST_CONNECTIONS):
        problems.append(f"{shown}: connections is a number from 1 to {MOST_CONNECTIONS}, not {connections!r}")
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
