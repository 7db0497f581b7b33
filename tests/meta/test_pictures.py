"""Pictures of the README: well-formed, loading nothing from elsewhere, naming no machine."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.meta.tree import ROOT, name_of

PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))


def test_there_are_pictures() -> None:
    assert {"top.svg", "lifecycle.svg"} <= {path.name for path in PICTURES}


@pytest.mark.parametrize("path", PICTURES, ids=name_of)
def test_a_picture_is_whole_and_loads_nothing_from_elsewhere(path: Path) -> None:
    text = path.read_text()
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert re.findall(r"""(?:url\(["']?|href=["'])https?:""", text) == []


@pytest.mark.parametrize("path", PICTURES, ids=name_of)
def test_a_picture_names_no_path_of_a_machine(path: Path) -> None:
    assert re.findall(r"/(?:tmp|home|root|work|Users)\b", path.read_text()) == []
