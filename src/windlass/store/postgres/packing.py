"""Many values in one parameter: the driver looks long at every element of an array, and not at all into a text.

Statements unpack them by `string_to_array(:ids, ',')::uuid[]`. Only what cannot contain the separator is packed.
"""

from collections.abc import Iterable, Sequence

from windlass.core.ids import JobId


def ids(values: Iterable[JobId]) -> str:
    """Ids, separated by commas."""
    return ",".join(values)


def numbers(values: Iterable[int | None]) -> str:
    """Numbers, separated by commas; where there is none, there is nothing between two of them."""
    return ",".join(["" if value is None else str(value) for value in values])


def texts(values: Sequence[str | None]) -> Sequence[str | None] | None:
    """Texts go as an array, since they may contain anything: but as none if there is nothing in it."""
    return values if any(value is not None for value in values) else None
