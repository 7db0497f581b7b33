"""Versions of the key map: what is older is brought up to date by whoever opens the store first.

A step must be safe to do again, and by two at once: it goes from queue to queue, each by one script that leaves alone
what is as it should be. Only then is the version written, and it never goes back.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from windlass.store.redis.access import Access


class Step(NamedTuple):
    """From one version to the next."""

    name: str
    apply: "Callable[[Access], Awaitable[None]] | None" = None
    """Nothing to do for the first: there are no keys yet."""


STEPS: Sequence[Step] = (Step("0001_initial"),)
"""The version of a key map is how many of them were done."""


async def bring_up(access: "Access", found: int, steps: Sequence[Step] = STEPS) -> list[str]:
    """Do the steps that are missing; their names."""
    done = []
    for version, step in enumerate(steps[found:], found + 1):
        if step.apply is not None:
            await step.apply(access)
        await access.office("raise_version", version)
        done.append(step.name)
    return done
