"""The pytest plugin, in runs of pytest of its own."""

import importlib
import tomllib
from pathlib import Path

import pytest

SHOP = """
from windlass import App

app = App("sqlite:///real.db")

@app.task
def greet(name: str) -> str:
    return f"hello {name}"
"""
TEST = """
from shop import greet

def test_a_job_runs(windlass_sandbox, windlass_clock):
    greet.using(delay=60).enqueue("ann")
    assert windlass_sandbox.run_all().attempts == 0
    windlass_clock.advance(minutes=1)
    assert [job.result for job in windlass_sandbox.run_all().completed] == ["hello ann"]

def test_nothing_is_left_of_it(windlass_sandbox):
    assert windlass_sandbox.app.jobs.list().items == ()
"""


@pytest.fixture
def yard(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with a shop in it. Only our plugin is loaded, by its module: it need not be installed.

    Its own settings file keeps pytest from looking for one in the folders above, which are not ours.
    """
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.plugins = ["windlass_pytest"]
    pytester.makeini("[pytest]\n")
    pytester.makepyfile(shop=SHOP)
    return pytester


def run(yard: pytest.Pytester) -> pytest.RunResult:
    return yard.runpytest_subprocess("-p", "windlass_pytest", "-W", "error")


def test_the_setting_names_the_app(yard: pytest.Pytester) -> None:
    yard.makeini("[pytest]\nwindlass_app = shop:app\n")
    yard.makepyfile(TEST)
    run(yard).assert_outcomes(passed=2)
    assert not (yard.path / "real.db").exists()


def test_a_fixture_gives_the_app(yard: pytest.Pytester) -> None:
    yard.makeconftest("import pytest, shop\n\n@pytest.fixture\ndef windlass_app():\n    return shop.app\n")
    yard.makepyfile(TEST)
    run(yard).assert_outcomes(passed=2)


def test_without_either_it_says_what_to_do(yard: pytest.Pytester) -> None:
    yard.makepyfile(TEST)
    result = run(yard)
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*does not know your app: set windlass_app*"])
    assert "Traceback" not in result.stdout.str()


def test_a_wrong_setting_is_named(yard: pytest.Pytester) -> None:
    yard.makeini("[pytest]\nwindlass_app = shop:nothing\n")
    yard.makepyfile(TEST)
    result = run(yard)
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*windlass_app: module 'shop' has no 'nothing'*"])


def test_a_program_that_does_not_use_it_does_not_pay_for_it(yard: pytest.Pytester) -> None:
    yard.makepyfile(
        """
        import sys

        def test_windlass_is_not_imported():
            assert "windlass_pytest" in sys.modules
            assert "windlass" not in sys.modules
        """
    )
    run(yard).assert_outcomes(passed=1)


def test_pytest_finds_it_by_its_entry_point() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    module = importlib.import_module(project["project"]["entry-points"]["pytest11"]["windlass"])
    assert module.pytest_addoption
    folders = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert f"src/{module.__name__}" in folders
