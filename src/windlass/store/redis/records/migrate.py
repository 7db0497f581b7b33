"""Versions of the key map: an older one is migrated by the first process that opens the store.

A step is safe to repeat, and to run twice at once: it goes from queue to queue, each by one script that skips what
is done. Only then is the version written, and it never decreases. Beside it is the oldest version whose code works
with these keys: in a rolling deploy old workers run beside new ones, unless a step is breaking.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from windlass.store.redis.connection.server_watch import too_new

if TYPE_CHECKING:
    from windlass.store.redis.connection.access import Access


class Step(NamedTuple):
    """A migration from one version of the key map to the next."""

    name: str
    apply: "Callable[[Access], Awaitable[None]] | None" = None
    """None for the first: there are no keys yet."""
    breaking: bool = False
    """Whether older code cannot work with the migrated keys."""


STEPS: Sequence[Step] = (Step("0001_initial"),)
"""The version of a key map is the number of steps applied."""

VERSION = len(STEPS)
VERSION_FIELDS = ("version", "oldest")
"""Fields of `meta`."""


class MapVersion(NamedTuple):
    """The version of the keys in a store."""

    number: int
    oldest: int
    """The lowest version whose code works with them."""

    def fits(self) -> bool:
        """Whether this Windlass can work with them."""
        return self.oldest <= VERSION


def read_version(number: bytes | None, oldest: bytes | None) -> MapVersion:
    """From the fields of `meta`; without `oldest`, older code cannot work with the keys."""
    found = int(number or 0)
    return MapVersion(found, found if oldest is None else int(oldest))


async def check_schema(access: "Access") -> None:
    """Refuse keys after a breaking step of a newer Windlass."""
    found = read_version(*await access.command("HMGET", "meta", *VERSION_FIELDS))
    if not found.fits():
        raise too_new(access.server.shown, found.number, VERSION)


async def bring_up(access: "Access", found: int, steps: Sequence[Step] = STEPS) -> list[str]:
    """Apply the missing steps; returns their names."""
    done = []
    for version, step in enumerate(steps[found:], found + 1):
        if step.apply is not None:
            await step.apply(access)
        await access.call_global("raise_version", (version, step.breaking))
        done.append(step.name)
    return done
