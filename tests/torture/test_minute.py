"""A minute of faults, by a seed: kills, stalls, stops and cancellations, then peace, then the audit.

TORTURE_SEED picks the order of faults, or TORTURE_SEEDS several; TORTURE_SECONDS how long they go on.
"""

import json
import os
from pathlib import Path

import pytest

from tests.torture.nemesis import Nemesis
from tests.torture.yard import Yard
from windlass.observe.history import SWITCH

SEEDS = os.environ.get("TORTURE_SEEDS") or os.environ.get("TORTURE_SEED") or "1"
SECONDS = float(os.environ.get("TORTURE_SECONDS", "35"))


@pytest.mark.parametrize("seed", [int(seed) for seed in SEEDS.split(",")])
def test_a_minute_of_faults_breaks_no_law(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    print(f"TORTURE_SEED={seed} TORTURE_SECONDS={SECONDS:g}")
    yard = Yard(tmp_path)
    # Our own cancellations belong into the history too.
    monkeypatch.setenv(SWITCH, str(yard.histories))
    try:
        nemesis = Nemesis(yard, seed)
        nemesis.torment(SECONDS)
        nemesis.heal()
        report = yard.audit()
        print(json.dumps(report.figures))
        assert not report.violations, str(report)
        assert report.figures["runs"] > 100, "hardly anything happened"
        assert report.figures["faults"] > SECONDS / 5
    finally:
        yard.close()
