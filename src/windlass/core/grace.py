"""Grace: a lease is extended after a time without any renewal, since that does not show that its runner is dead."""

import msgspec

from windlass.core.moments import SECOND, Micros

MAX_GRACES = 10
"""Max graces until a renewal, so that jobs of a dead runner are rescued even while the server flaps."""
MIN_OUTAGE: Micros = SECOND
"""A coordinator checks for lapsed leases twice a second; a shorter gap is no outage."""


class Silence(msgspec.Struct, frozen=True):
    """How long the store received no renewal, and how long no call at all, up to the present call."""

    unrenewed: Micros
    """Since the last renewal of any lease, or the last grace."""
    unreached: Micros
    """The same, but since the last check for lapsed leases if that was later."""


def gets_grace(graces: int, length: Micros, silence: Silence) -> bool:
    """Whether a lease of this length, which had this number of graces since its renewal, gets another one.

    The first grace follows any time without a renewal, whatever the cause. Later graces require that the store was
    out of reach: where a check for lapsed leases is answered, renewals would be answered too.
    """
    if graces == 0:
        return silence.unrenewed > length // 2
    return graces < MAX_GRACES and silence.unreached > max(length // 2, MIN_OUTAGE)
