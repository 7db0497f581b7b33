"""Addresses of Redis servers, and their options.

redis://user:password@host:6379/0               one server; rediss:// with TLS
unix:///run/redis/redis.sock                    the same, on this machine
redis+sentinel://host1:26379,host2,host3/service/0    the master of a service, as Sentinels report it
redis+cluster://host1:6379,host2,host3          a cluster; rediss+… with TLS
"""

from enum import Enum, auto
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import msgspec

from windlass.core.names import check_name
from windlass.errors import ConfigError, InvalidName
from windlass.store.redis.records.keys import DEFAULT_PREFIX

OPTIONS = ("prefix", "durability", "replicas")
SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")
DRIVER = (
    "db",
    "username",
    "password",
    "client_name",
    "socket_keepalive",
)
"""Options that the driver takes; with an unknown one it would fail only at the first call."""
TLS = ("ssl_ca_certs", "ssl_cert_reqs", "ssl_certfile", "ssl_check_hostname", "ssl_keyfile")
"""Only with rediss://: without TLS the driver refuses them."""
MAX_REPLICAS = 10
PORT, SENTINEL_PORT = 6379, 26379


class Kind(Enum):
    """What the address names."""

    SERVER = auto()
    SENTINEL = auto()
    CLUSTER = auto()


class Address(msgspec.Struct, frozen=True):
    """Where the server is, the prefix of the keys, and the durability that is asked for."""

    dsn: str
    """For the driver: with the password and all hosts, without Windlass's own options."""
    prefix: str = DEFAULT_PREFIX
    durable: bool = True
    """Whether a server that does not write to disk is refused."""
    replicas: int = 0
    """How many replicas must have a change before it counts as done."""

    @property
    def url(self) -> str:
        """The whole address, as another process needs it."""
        options = {} if self.prefix == DEFAULT_PREFIX else {"prefix": self.prefix}
        if not self.durable:
            options["durability"] = "none"
        if self.replicas:
            options["replicas"] = str(self.replicas)
        if not options:
            return self.dsn
        return self.dsn + ("&" if "?" in self.dsn else "?") + urlencode(options)

    @property
    def kind(self) -> Kind:
        """By the part of the scheme after the +."""
        word = self.dsn.partition(":")[0].partition("+")[2]
        return Kind[word.upper()] if word else Kind.SERVER

    @property
    def service(self) -> str:
        """What Sentinels call the servers that they watch."""
        return urlsplit(self.dsn).path.strip("/").partition("/")[0]

    @property
    def hosts(self) -> list[tuple[str, int]]:
        """The hosts of the address."""
        port = SENTINEL_PORT if self.kind is Kind.SENTINEL else PORT
        return [_host(each, port) for each in urlsplit(self.dsn).netloc.rpartition("@")[2].split(",")]

    def at(self, host: str, port: int) -> str:
        """The address of one server of several, with the same user and settings."""
        parts = urlsplit(self.dsn)
        user, at, _ = parts.netloc.rpartition("@")
        db = parts.path.strip("/").partition("/")[2] if self.kind is Kind.SENTINEL else ""
        query = _written({name: value for name, value in parse_qsl(parts.query) if name not in SENTINEL_OPTIONS})
        return urlunsplit((self._plain, f"{user}{at}{_shown(host, port)}", f"/{db or 0}", query, ""))

    def sentinel(self, host: str, port: int) -> str:
        """The address of a Sentinel, which has users of its own."""
        options = dict(parse_qsl(urlsplit(self.dsn).query))
        words = [quote(options.pop(name, ""), safe="") for name in SENTINEL_OPTIONS]
        user = ":".join(words) + "@" if any(words) else ""
        query = _written({name: value for name, value in options.items() if name.startswith("ssl_")})
        return urlunsplit((self._plain, f"{user}{_shown(host, port)}", "", query, ""))

    @property
    def _plain(self) -> str:
        return self.dsn.partition(":")[0].partition("+")[0]


def parse_address(url: str, shown: str) -> Address:
    """The address; raises ConfigError with everything that is wrong with it. `shown` names it in errors."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    problems = []
    prefix = options.pop("prefix", DEFAULT_PREFIX)
    try:
        check_name(prefix, "prefix")
    except InvalidName as error:
        problems.append(f"{shown}: {error}")
    durability = options.pop("durability", "server")
    if durability not in ("server", "none"):
        problems.append(f"{shown}: durability is server or none, not {durability!r}")
    replicas = options.pop("replicas", "0")
    if not (replicas.isdecimal() and int(replicas) <= MAX_REPLICAS):
        problems.append(f"{shown}: replicas is a number from 0 to {MAX_REPLICAS}, not {replicas!r}")
    problems += [f"{shown}: {each}" for each in (*_wrong_options(parts.scheme, options), *_wrong_server(url))]
    if problems:
        raise ConfigError(problems)
    netloc = parts.netloc
    base = f"unix://{netloc}{parts.path}" if parts.scheme == "unix" else f"{parts.scheme}://{netloc}{parts.path}"
    dsn = base + (f"?{_written(options)}" if options else "")
    return Address(dsn, prefix, durability != "none", int(replicas))


def _wrong_options(scheme: str, options: dict[str, str]) -> list[str]:
    tls = scheme.startswith("rediss")
    known = (*DRIVER, *(SENTINEL_OPTIONS if scheme.endswith("+sentinel") else ()), *(TLS if tls else ()))
    names = ", ".join((*OPTIONS, *known))
    problems = [f"unknown option {name!r}; there are {names}" for name in options if name not in (*known, *TLS)]
    if not tls:
        instead = "a socket has none" if scheme == "unix" else f"write {scheme.replace('redis', 'rediss')}://"
        problems += [f"{name} is for TLS; {instead}" for name in options if name in TLS]
    if not options.get("db", "0").isdecimal():
        problems.append(f"a database of Redis is a number, not {options['db']!r}")
    return problems


def _wrong_server(url: str) -> list[str]:
    parts = urlsplit(url)
    problems = ["a # in a name or password must be written %23"] if parts.fragment else []
    way = parts.path.strip("/").split("/")
    hosts = parts.netloc.rpartition("@")[2].split(",")
    kind = parts.scheme.partition("+")[2]
    if parts.scheme == "unix":
        return problems if parts.path else [*problems, "names no socket; write unix:///path/to/redis.sock"]
    if not all(_is_host(host) for host in hosts):
        problems.append("write a host as host or host:port (a number up to 65535), several separated by commas")
    if len(hosts) > 1 and not kind:
        problems.append("several hosts need redis+cluster:// or redis+sentinel://; redis:// has one host")
    if kind == "sentinel":
        if not way[0]:
            problems.append("names no service; write redis+sentinel://host1,host2,host3/service")
        way = way[1:] or [""]
    if len(way) > 1 or (way[0] and not way[0].isdecimal()):
        problems.append(f"a database of Redis is a number, not {'/'.join(way)!r}")
    elif kind == "cluster" and way[0] not in ("", "0"):
        problems.append("a cluster has only database 0")
    return problems


def _is_host(host: str) -> bool:
    try:
        return bool(_host(host, PORT)[0])
    except ValueError:
        return False


def _host(text: str, port: int) -> tuple[str, int]:
    """Host and port of a text, which may be [::1]:6379."""
    parts = urlsplit(f"//{text}")
    return parts.hostname or "", parts.port or port


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _written(options: dict[str, str]) -> str:
    return "&".join(f"{name}={quote(value, safe='')}" for name, value in options.items())
