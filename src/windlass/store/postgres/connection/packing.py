"""Many values in one parameter: the driver encodes each element of an array, but a text as a whole.

Statements unpack them by `string_to_array(:ids, ',')::uuid[]`. Only values that cannot contain the separator are
packed.
"""

from collections.abc import Iterable, Sequence

from windlass.core.ids import JobId


def ids(values: Iterable[JobId]) -> str:
    """Ids, separated by commas."""
    return ",".join(values)


def numbers(values: Iterable[int | None]) -> str:
    """Numbers, separated by commas; None is empty."""
    return ",".join(["" if value is None else str(value) for value in values])


def texts(values: Sequence[str | None]) -> Sequence[str | None] | None:
    """Texts as an array, since they may contain anything; None if all are None."""
    return values if any(value is not None for value in values) else None
