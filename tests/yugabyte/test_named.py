"""`make test-yugabyte ADDRESS=…`: what the tests expect of the cluster that it names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers.named_yugabyte import VARIABLE, Schemas
from tests.support.servers.places import postgres_place
from tests.support.steps import take_step
from windlass.store.open import open_store

ROOT = Path(__file__).parents[2]
ASKED = """
from tests.support.addresses import ADDRESSES, WITHOUT_HINTS
from tests.support.stores import STORES

name = "yugabyte-named"
print(name in ADDRESSES, name not in WITHOUT_HINTS, STORES[name].notifies)
"""


@pytest.mark.parametrize(
    ("address", "hints"),
    [
        ("yugabyte://u@127.0.0.1,127.0.0.2/d", False),
        ("yugabyte://u@127.0.0.1/d?notify=on", True),
        ("postgresql://u@127.0.0.1/d?profile=yugabyte", False),
    ],
)
def test_a_test_waits_for_a_hint_only_if_the_address_turns_hints_on(address: str, hints: bool) -> None:
    """Else it would wait for hours: no waiter polls in those tests."""
    said = subprocess.run(
        [sys.executable, "-c", ASKED],
        env={**os.environ, VARIABLE: address},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.split() == ["True", str(hints), str(hints)]


async def test_a_schema_is_for_the_next_test_unless_one_took_it_a_step_further(tmp_path: Path) -> None:
    schemas = Schemas(f"{postgres_place(tmp_path)}?profile=yugabyte&buckets=2")
    try:
        first = schemas.of(tmp_path / "one")
        schemas.give_back(tmp_path)
        assert schemas.of(tmp_path / "two") == first
        store = open_store(first)
        await take_step(store, breaking=True)
        await store.close()
        schemas.give_back(tmp_path)
        assert schemas.of(tmp_path / "three") != first
    finally:
        schemas.close()
