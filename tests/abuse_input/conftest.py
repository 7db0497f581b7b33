"""What is accepted and refused is the same with the YugabyteDB profile."""

from pathlib import Path

import pytest

from tests.support.addresses import ADDRESSES
from tests.support.stores import yugabyte_url


@pytest.fixture(params=sorted([*ADDRESSES, "yugabyte"]))
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an app may keep its jobs; nothing is there yet."""
    return yugabyte_url(tmp_path) if request.param == "yugabyte" else ADDRESSES[request.param](tmp_path)
