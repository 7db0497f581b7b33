"""The address of a server: which database, which schema, which profile, and how to connect."""

import re
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import msgspec

from windlass.errors import ConfigError
from windlass.store.postgres.connection.profile import MAX_BUCKETS, PROFILES, YUGABYTE, Profile

DEFAULT_SCHEMA = "windlass"
OPTIONS = ("schema", "notify", "connections", "profile", "buckets", "order")
YUGABYTE_PORT = 5433
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
"""Options for the driver, which would treat other libpq options as server settings."""
MAX_CONNECTIONS = 50
MAX_SCHEMA_LENGTH = 50
"""PostgreSQL allows 63; the channel of the hints contains the schema's name."""
_SCHEMA = re.compile(rf"[a-z_][a-z0-9_]{{0,{MAX_SCHEMA_LENGTH - 1}}}")


class Address(msgspec.Struct, frozen=True):
    """Where the server is, which schema to use, and how to connect."""

    dsn: str
    """The address for the driver: with the password, without Windlass's options."""
    schema: str = DEFAULT_SCHEMA
    notify: bool = True
    connections: int | None = None
    profile_name: str = ""
    cluster: bool = False
    """Whether the address begins with yugabyte://, so that the server must be YugabyteDB."""
    buckets: int | None = None
    """The number of buckets of new tables, in a profile with buckets."""
    loose: bool = False
    """Whether a claim takes jobs from some buckets only, so that several claims can run at once."""

    @property
    def profile(self) -> Profile:
        """What differs from PostgreSQL."""
        return PROFILES[self.profile_name]

    @property
    def hosts(self) -> list[str]:
        """The address once for each host."""
        parts = urlsplit(self.dsn)
        user, at, hosts = parts.netloc.rpartition("@")
        if "," not in hosts:
            return [self.dsn]
        return [urlunsplit(parts._replace(netloc=f"{user}{at}{host}")) for host in hosts.split(",")]

    @property
    def url(self) -> str:
        """The canonical address, with the password, for another process."""
        options = {} if self.schema == DEFAULT_SCHEMA else {"schema": self.schema}
        if self.notify == bool(self.profile_name):
            options["notify"] = "on" if self.notify else "off"
        if self.connections is not None:
            options["connections"] = str(self.connections)
        if self.profile_name and not self.cluster:
            options["profile"] = self.profile_name
        if self.buckets is not None:
            options["buckets"] = str(self.buckets)
        if self.loose:
            options["order"] = "loose"
        dsn = self.dsn.replace("postgresql://", "yugabyte://", 1) if self.cluster else self.dsn
        if not options:
            return dsn
        return dsn + ("&" if "?" in dsn else "?") + urlencode(options)


def parse_address(url: str, shown: str) -> Address:
    """Parse an address; raises ConfigError with every problem at once. `shown` is the address without secrets."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    cluster = parts.scheme == YUGABYTE
    profile = options.pop("profile", YUGABYTE if cluster else "")
    taken = _Options(shown, options)
    schema = taken.schema()
    notify = taken.one_of("notify", ("off", "on") if profile else ("on", "off"))
    connections = taken.number("connections", MAX_CONNECTIONS)
    buckets = taken.number("buckets", MAX_BUCKETS)
    order = taken.one_of("order", ("strict", "loose"))
    problems = taken.problems
    if profile not in PROFILES or (cluster and profile != YUGABYTE):
        problems.append(f"{shown}: profile is {YUGABYTE}, not {profile!r}")
    elif not profile and (buckets is not None or order == "loose"):
        problems.append(f"{shown}: buckets and order are options of yugabyte://, or of ?profile={YUGABYTE}")
    if not parts.path.strip("/"):
        problems.append(f"{shown}: names no database; write {parts.scheme}://user@host/database")
    if parts.fragment:
        problems.append(f"{shown}: a # in a name or password must be written %23")
    known = ", ".join((*OPTIONS, *LIBPQ))
    problems += [f"{shown}: unknown option {name!r}; there are {known}" for name in options if name not in LIBPQ]
    if problems:
        raise ConfigError(problems)
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in options.items())
    netloc = _with_ports(parts.netloc) if cluster else parts.netloc
    dsn = f"postgresql://{netloc}{parts.path}" + (f"?{query}" if query else "")
    return Address(dsn, schema, notify == "on", connections, profile, cluster, buckets, order == "loose")


class _Options:
    """Takes Windlass's options out of the options of an address, and collects the problems with them."""

    def __init__(self, shown: str, options: dict[str, str]) -> None:
        self._shown = shown
        self._options = options
        self.problems: list[str] = []

    def schema(self) -> str:
        schema = self._options.pop("schema", DEFAULT_SCHEMA)
        if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_") or schema == "information_schema":
            self._problem(
                f"schema is up to {MAX_SCHEMA_LENGTH} small letters, digits and underscores, not beginning with a "
                f"digit or pg_, not {schema!r}"
            )
        return schema

    def one_of(self, name: str, known: tuple[str, str]) -> str:
        """The value of an option that is one of two words; the first word is the default."""
        value = self._options.pop(name, known[0])
        if value not in known:
            self._problem(f"{name} is {' or '.join(sorted(known, reverse=True))}, not {value!r}")
        return value

    def number(self, name: str, most: int) -> int | None:
        value = self._options.pop(name, None)
        if value is None or (value.isdecimal() and 1 <= int(value) <= most):
            return None if value is None else int(value)
        self._problem(f"{name} is a number from 1 to {most}, not {value!r}")
        return None

    def _problem(self, text: str) -> None:
        self.problems.append(f"{self._shown}: {text}")


def _with_ports(netloc: str) -> str:
    """The same hosts, with YugabyteDB's default port where the address has none."""
    user, at, hosts = netloc.rpartition("@")
    named = [host if re.search(r":\d+$", host) else f"{host}:{YUGABYTE_PORT}" for host in hosts.split(",")]
    return f"{user}{at}{','.join(named)}"
