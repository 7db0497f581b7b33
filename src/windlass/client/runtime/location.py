"""The addresses of the store and of the blob folder: one rule for every app and command.

The given address, else the variable, else the settings file of the folder in which the app was created; for the store
finally sqlite:///windlass.db there. Addresses are made absolute at once, so that a process may change its folder
later. The file is read when first needed.
"""

import os
import re
from collections.abc import Callable
from functools import cached_property

import msgspec

from windlass.blobs.open import BLOBS_VARIABLE, absolute_blobs
from windlass.client.runtime.settings import FILES, Settings, current_folder, read_settings
from windlass.core.webhooks.addresses import Network, parse_networks
from windlass.core.webhooks.webhook import NETWORKS_SETTING
from windlass.errors import ConfigError
from windlass.store.open import DEFAULT_ADDRESS, MEMORY_ADDRESS, absolute, redact

STORE_VARIABLE = "WINDLASS_STORE"
APP_VARIABLE = "WINDLASS_APP"
NETWORKS_VARIABLE = "WINDLASS_WEBHOOK_NETWORKS"
GIVEN = "store of App(...)"
_UNSEEN = re.compile(r"[\x00-\x1f\x7f]")


class Found(msgspec.Struct, frozen=True):
    """An absolute address, and its origin."""

    address: str
    rule: str
    named: bool = True
    """False: it is the default."""


class Location:
    """The addresses of one app, and the folder in which they were given."""

    def __init__(self, store: str | None, blobs: str | None) -> None:
        self._folder = current_folder()
        self._alone = store == MEMORY_ADDRESS
        """An app for tests reads no settings."""
        self._store = self._given(store, GIVEN, STORE_VARIABLE, absolute)
        self._blobs = self._given(blobs, "blobs of App(...)", BLOBS_VARIABLE, absolute_blobs)

    @property
    def known(self) -> str | None:
        """The address of the store; None if it would take reading the settings file."""
        return None if self._store is None and "store" not in vars(self) else self.store.address

    @cached_property
    def store(self) -> Found:
        """The address of the store. Raises ConfigError."""
        found = self._store or self._from_file("store", absolute)
        return found or Found(self._absolute(DEFAULT_ADDRESS, "the default", absolute), "the default", named=False)

    @cached_property
    def blobs(self) -> str | None:
        """The folder for large payloads, if any. Raises ConfigError."""
        found = self._blobs or self._from_file("blobs", absolute_blobs)
        return None if found is None else found.address

    @cached_property
    def webhook_networks(self) -> tuple[Network, ...]:
        """Networks that webhooks may reach although they are not public. Raises ConfigError."""
        given = None if self._alone else os.environ.get(NETWORKS_VARIABLE)
        if given is not None:
            return parse_networks(given, NETWORKS_VARIABLE)
        return parse_networks(self._settings.text(NETWORKS_SETTING) or "", NETWORKS_SETTING)

    @property
    def searched(self) -> str:
        """What was searched for a store and names none, for a message."""
        return f"{STORE_VARIABLE} is not set, and no {' or '.join(FILES)} in {self._folder} names a store"

    @cached_property
    def _settings(self) -> Settings:
        return Settings() if self._alone else read_settings(self._folder)

    def _given(
        self, given: str | None, by: str, variable: str, make: Callable[[str, str | None], str]
    ) -> Found | None:
        if given is not None:
            return Found(self._absolute(given, by, make), by)
        value = None if self._alone else os.environ.get(variable)
        return None if value is None else Found(self._absolute(value, variable, make), variable)

    def _from_file(self, name: str, make: Callable[[str, str | None], str]) -> Found | None:
        value, path = self._settings.text(name), self._settings.path
        if value is None:
            return None
        rule = f"{name} in {path}"
        return Found(self._absolute(value, rule, make), rule)

    def _absolute(self, address: str, rule: str, make: Callable[[str, str | None], str]) -> str:
        if not isinstance(address, str):
            raise ConfigError(f"{rule} should be a string{_such(rule)}, not {type(address).__name__}")
        if not address.strip():
            raise ConfigError(empty(rule))
        if address != address.strip() or _UNSEEN.search(address):
            # A line end from a secret or a file of variables would name another file.
            raise ConfigError(f"{rule} has white space around it, or a control character: {redact(address)!r}")
        return make(address, self._folder)


def empty(name: str) -> str:
    """The message for an empty setting: ignoring it would use an unintended store."""
    return f"{name} is set but empty: give it a value, or leave it out"


def _such(rule: str) -> str:
    return " such as 'sqlite:///jobs.db'" if rule.startswith("store") else ""
