"""Adds the options --store and --app of this call to commands in advice."""

import os
import re
import shlex

import msgspec

from windlass.client.runtime.location import APP_VARIABLE
from windlass.store.open import redact

_COMMAND = re.compile(
    r"windlass (?:(?:jobs|dead|queues|schedules|workers) [a-z]+|(?:coordinator|doctor|enqueue|migrate|stats|top)\b)"
)
_APP = "module:app"
"""The placeholder for the app in advice."""
_WITHOUT_APP = ("windlass coordinator",)


class Advice(msgspec.Struct, frozen=True):
    """The options --store and --app as they were given."""

    store: str | None
    app: str | None

    def __call__(self, text: str) -> str:
        """The text, with commands that reach the same store."""
        if self.app is not None:
            text = text.replace(_APP, shlex.quote(self.app))
        return _COMMAND.sub(lambda found: f"{found[0]}{self._options(found[0])}", text)

    def _options(self, command: str) -> str:
        # An address with a password is not repeated; without it the command would be wrong.
        shown = self.store if self.store is not None and redact(self.store) == self.store else None
        # The variable holds for the next command too.
        named = command in _WITHOUT_APP or self.app == os.environ.get(APP_VARIABLE)
        given = {"--store": shown, "--app": None if named else self.app}
        return "".join(f" {option} {shlex.quote(value)}" for option, value in given.items() if value is not None)
