"""Parameters that `make test` leaves to `make test-all`."""

from collections.abc import Iterable
from typing import TypeVar

import pytest
from _pytest.mark.structures import ParameterSet

T = TypeVar("T")


def extended(values: Iterable[T]) -> list[ParameterSet]:
    """These parameters, marked."""
    return [pytest.param(value, marks=pytest.mark.extended) for value in values]


def in_part(values: Iterable[T], part: Iterable[T]) -> list[T | ParameterSet]:
    """All of them, marked if they are not of the part that `make test` runs."""
    kept = set(part)
    return [value if value in kept else pytest.param(value, marks=pytest.mark.extended) for value in values]
