"""What is accepted and refused is the same with the YugabyteDB profile."""

from pathlib import Path

import pytest

from tests.support.addresses import ADDRESSES
from tests.support.stores import yugabyte_limits_url, yugabyte_url

PLACES = {**ADDRESSES, "yugabyte": yugabyte_url, "yugabyte-limits": yugabyte_limits_url}


@pytest.fixture(params=sorted(PLACES))
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an app may keep its jobs; nothing is there yet."""
    return PLACES[request.param](tmp_path)
