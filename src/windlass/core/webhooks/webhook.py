"""A webhook: an address that gets events of ended jobs, and which of them it selects."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, TypedDict
from urllib.parse import urlsplit

import msgspec

from windlass.core.flow.queue import check_attempts
from windlass.core.hidden import parse_hidden
from windlass.core.moments import SECOND, Duration, Micros, duration
from windlass.core.names import check_name
from windlass.core.search import like
from windlass.core.suggest import unknown_option
from windlass.core.text import shown
from windlass.core.webhooks.addresses import Network, is_address, refusal
from windlass.core.webhooks.signature import Secret
from windlass.errors import InvalidName, InvalidOption

ENDS = ("job.completed", "job.dead", "job.cancelled", "flow.completed", "flow.dead", "flow.cancelled")
"""Events that a webhook can select."""
TEST = "webhook.test"
NETWORKS_SETTING = "webhook_networks"
MAX_WEBHOOKS = 100
MAX_NAME = 100
MAX_URL = 2_000
MAX_LISTED = 100
"""Queues or types that one webhook selects."""
DEFAULT_ATTEMPTS = 10
DEFAULT_TIMEOUT: Micros = 15 * SECOND
MAX_TIMEOUT: Micros = 30 * SECOND


class WebhookOptions(TypedDict, total=False):
    """The arguments of `app.webhooks.add`; every given selection must match."""

    events: Iterable[str]
    """`job.completed`, `job.dead`, `job.cancelled`, and the same of `flow.`; default: all of them."""
    queues: Iterable[str]
    types: Iterable[str]
    """`*` stands for any characters."""
    contents: bool
    """Whether bodies have the job's payload and result."""
    hide: Iterable[str]
    """Fields of payloads and results that are left out: names, or paths such as `card.number`."""
    max_attempts: int
    timeout: Duration


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The checked options of a webhook."""

    events: tuple[str, ...] = ENDS
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    contents: bool = False
    hide: tuple[str, ...] = ()
    max_attempts: int = DEFAULT_ATTEMPTS
    timeout: Micros = DEFAULT_TIMEOUT

    def selects(self, event: str, queue: str, type_: str) -> bool:
        """Whether it selects this event of a job with this queue and type."""
        if event not in self.events or (self.queues and queue not in self.queues):
            return False
        return not self.types or any(like(type_, each) for each in self.types)


class StoredWebhook(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A webhook in the store, with its secrets."""

    id: str
    """Unique: a webhook that is added again under its old name gets another."""
    url: str
    settings: WebhookSettings
    secrets: tuple[Secret, ...]
    """The newest first."""
    mac_key: Secret
    """The key of the code that shows that Windlass made a delivery: any producer may enqueue jobs of its type."""
    paused: bool = False

    def secrets_at(self, now: Micros) -> tuple[str, ...]:
        """The texts of the secrets that sign at a moment."""
        return tuple(each.text for each in self.secrets if each.until is None or each.until > now)

    def rotated(self, secret: str, now: Micros, overlap: Micros) -> "StoredWebhook":
        """The webhook with a new secret; the old ones sign for the overlap, and no longer than before."""
        until = now + overlap
        old = [Secret(each.text, min(until, each.until or until)) for each in self.secrets]
        kept = [each for each in old if each.until is not None and each.until > now]
        return msgspec.structs.replace(self, secrets=(Secret(secret), *kept))


class Webhook(msgspec.Struct, frozen=True, kw_only=True):
    """A webhook as users see it: everything but its secrets."""

    name: str
    url: str
    events: tuple[str, ...]
    queues: tuple[str, ...]
    types: tuple[str, ...]
    contents: bool
    hide: tuple[str, ...]
    max_attempts: int
    timeout: float
    """In seconds."""
    paused: bool
    created_at: datetime
    old_secret_until: datetime | None = None
    """Until when the secret before the last rotation also signs."""


def settings_of(**options: Any) -> WebhookSettings:
    """The settings of given options; raises InvalidInput."""
    if unknown := [name for name in options if name not in WebhookOptions.__annotations__]:
        raise unknown_option(unknown[0], WebhookOptions.__annotations__, "an option of a webhook")
    checked = {name: _CHECKS[name](value) for name, value in options.items() if value is not None}
    return WebhookSettings(**checked)


def check_webhook_name(name: str) -> str:
    """A name that fits into a tag of its deliveries."""
    if len(check_name(name, "name")) > MAX_NAME:
        raise InvalidName("name", f"has {len(name)} characters, the limit is {MAX_NAME}", limit=MAX_NAME)
    return name


def check_url(url: object, allowed: Sequence[Network]) -> str:
    """An address that deliveries may go to, as far as it can be checked without resolving its name."""
    if not isinstance(url, str) or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidOption("url", f"must be an address in printable ASCII, not {shown(url)}")
    if len(url) > MAX_URL:
        raise InvalidOption("url", f"has {len(url)} characters, the limit is {MAX_URL}", limit=MAX_URL)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
        (host or "").encode("idna")  # as the resolver will: no label is empty or too long
    except ValueError as error:
        raise InvalidOption("url", f"cannot be read: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise InvalidOption("url", f"must be https://host/path, not {shown(url)}")
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise InvalidOption("url", "must have no user, password or fragment: deliveries are signed instead")
    if is_address(host) and (problem := refusal(host, allowed)) is not None:
        raise InvalidOption("url", f"{problem}; the setting {NETWORKS_SETTING} names networks that are allowed")
    if parts.scheme == "http" and not allowed:
        raise InvalidOption(
            "url", f"must be https: plain http goes only to networks of the setting {NETWORKS_SETTING}"
        )
    return url


def _listed(field: str, check: Callable[[object, str], str]) -> Callable[[Any], tuple[str, ...]]:
    def checked(values: Any) -> tuple[str, ...]:
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InvalidOption(field, f"must be a list of names, not {type(values).__name__}")
        found = tuple(dict.fromkeys(check(each, f"{field}[{i}]") for i, each in enumerate(values)))
        if len(found) > MAX_LISTED:
            raise InvalidOption(field, f"has {len(found)} entries, the limit is {MAX_LISTED}", limit=MAX_LISTED)
        return found

    return checked


def _event(value: object, field: str) -> str:
    if value not in ENDS:
        raise InvalidOption(field, f"{shown(value)} is not one of {', '.join(ENDS)}")
    return str(value)


def _pattern(value: object, field: str) -> str:
    if isinstance(value, str) and value:
        check_name(value.replace("*", "_"), field)
        return value
    raise InvalidName(field, f"must be a type, in which * stands for any characters, not {shown(value)}")


def _hide(value: Any) -> tuple[str, ...]:
    rules = (value,) if isinstance(value, str) else tuple(value)
    parse_hidden(rules)
    return rules


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidOption("contents", f"must be true or false, not {shown(value)}")
    return value


def _timeout(value: Any) -> Micros:
    found = duration(value, "timeout")
    if not SECOND // 10 <= found <= MAX_TIMEOUT:
        raise InvalidOption("timeout", f"must be from 100ms to {MAX_TIMEOUT // SECOND}s, not {shown(value)}")
    return found


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "events": lambda value: _listed("events", _event)(value) or ENDS,
    "queues": _listed("queues", check_name),
    "types": _listed("types", _pattern),
    "contents": _flag,
    "hide": _hide,
    "max_attempts": check_attempts,
    "timeout": _timeout,
}
