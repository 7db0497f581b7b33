"""The mutants keep up with the source: each still applies, and names tests that exist (`make mutants` runs them)."""

import importlib.util
import sys
from types import ModuleType
from typing import Any

import pytest

from tests.meta.tree import ROOT


def _tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("windlass_mutants", ROOT / "tools" / "mutants.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MUTANTS = _tool().mutants() if (ROOT / "tools").exists() else []
LEAST = 10


def test_there_are_enough_of_them() -> None:
    assert len(MUTANTS) >= LEAST


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_still_applies_and_names_tests_that_exist(mutant: Any) -> None:
    texts: dict[str, str] = {}
    for edit in mutant.edits:
        text = texts.get(edit.file) or (ROOT / edit.file).read_text()
        assert text.count(edit.find) == 1, f"{edit.file}: {edit.find}"
        assert edit.find != edit.replace
        texts[edit.file] = text.replace(edit.find, edit.replace)
    assert [test for test in mutant.tests if not (ROOT / test).exists()] == []
