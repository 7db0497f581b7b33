"""The files of the forge are what their schemas say. They are not run here: that takes the forge."""

import subprocess
import sys
from pathlib import Path

import pytest

FORGE = Path(__file__).parents[2] / ".github"
FILES = {
    "vendor.github-workflows": sorted(FORGE.glob("workflows/*.yml")),
    "vendor.github-issue-forms": [FORGE / "ISSUE_TEMPLATE" / name for name in ("bug.yml", "feature.yml")],
    "vendor.github-issue-config": [FORGE / "ISSUE_TEMPLATE" / "config.yml"],
}


@pytest.mark.parametrize("schema", FILES)
def test_every_file_is_valid(schema: str) -> None:
    assert FILES[schema]
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *map(str, FILES[schema])]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
