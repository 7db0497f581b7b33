"""redis://host:port/db and its options."""

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

from windlass.core.names import check_name
from windlass.errors import ConfigError, InvalidName
from windlass.store.redis.keys import DEFAULT_PREFIX

SCHEMES = ("redis", "rediss", "unix")
OPTIONS = ("prefix", "durability")


class Address(msgspec.Struct, frozen=True):
    """Where the server is, under which prefix our keys are, and what we ask of it."""

    dsn: str
    """For the driver: with the password, without our own options."""
    prefix: str = DEFAULT_PREFIX
    durable: bool = True
    """Whether a server that does not write to disk is refused."""

    @property
    def url(self) -> str:
        """The whole address, as another process needs it."""
        options = {} if self.prefix == DEFAULT_PREFIX else {"prefix": self.prefix}
        if not self.durable:
            options["durability"] = "none"
        if not options:
            return self.dsn
        return self.dsn + ("&" if "?" in self.dsn else "?") + urlencode(options)


def parse_address(url: str, shown: str) -> Address:
    """The address, or everything that is wrong with it; `shown` is how it may be called in an error."""
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
    if problems:
        raise ConfigError(problems)
    dsn = urlunsplit(parts._replace(query=urlencode(options)))
    return Address(dsn, prefix, durability != "none")
