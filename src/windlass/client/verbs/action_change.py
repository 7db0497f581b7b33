"""What the verb `change` of an action sets in every job; a payload belongs to one job."""

from collections.abc import Mapping
from typing import Any

import msgspec

from windlass.client.tasks.options import check_options
from windlass.core.jobs.change import JobChange
from windlass.errors import InvalidOption

CHANGEABLE = ("priority", "queue", "delay", "run_at")


def action_change(verb: str, given: Mapping[str, Any] | None) -> JobChange | None:
    """The change, checked; None for another verb."""
    if verb != "change":
        if given:
            raise InvalidOption("change", f"has no effect on {verb}")
        return None
    if not given or not set(CHANGEABLE).issuperset(given):
        raise InvalidOption("change", f"must name what to change: {', '.join(CHANGEABLE)}")
    return JobChange(**check_options(given))


def said_change(change: JobChange | None) -> dict[str, Any]:
    """The change as the audit keeps it."""
    given = {} if change is None else msgspec.structs.asdict(change)
    return {name: value for name, value in given.items() if value is not None}
