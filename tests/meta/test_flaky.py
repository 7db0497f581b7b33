"""`tools/flaky.py`: what fails and then passes is listed by name, and three such tests fail the run."""

from pathlib import Path

import pytest
from tools import flaky

FIRST_FAILS = """
    import pathlib
    import pytest

    @pytest.mark.parametrize("n", range({flaky}))
    def test_flaky(n):
        tried = pathlib.Path(f"tried{{n}}")
        passes = tried.exists()
        tried.touch()
        assert passes

    def test_fails():
        assert {passes}

    def test_passes():
        pass
"""


@pytest.fixture(autouse=True)
def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The list of the run in a folder of the test's own."""
    path = tmp_path / "cache" / "flaky.txt"
    monkeypatch.setattr(flaky, "LIST", path)
    return path


@pytest.fixture
def again(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder in which pytest does not load our plugin."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return pytester


def test_what_passes_at_the_second_try_is_flaky(again: pytest.Pytester, listed: Path) -> None:
    again.makepyfile(FIRST_FAILS.format(flaky=2, passes=True))
    assert again.inline_run().ret == pytest.ExitCode.TESTS_FAILED
    assert flaky.try_again([]) == 0
    names = [line.partition(" ")[0].partition("::")[2] for line in listed.read_text().splitlines()]
    assert names == ["test_flaky[0]", "test_flaky[1]"]


def test_what_fails_twice_is_not_flaky(again: pytest.Pytester, listed: Path) -> None:
    again.makepyfile(FIRST_FAILS.format(flaky=0, passes=False))
    again.inline_run()
    assert flaky.try_again([]) == 1
    assert listed.read_text() == ""


def test_a_second_try_of_nothing_is_a_failure(again: pytest.Pytester) -> None:
    again.makepyfile("def test_passes(): pass")
    assert flaky.try_again([]) != 0


def test_two_flaky_tests_are_printed(listed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed.parent.mkdir()
    listed.write_text("a\nb\n")
    assert flaky.report() == 0
    assert capsys.readouterr().out == "flaky: a\nflaky: b\n"


def test_three_flaky_tests_fail_the_run(listed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed.parent.mkdir()
    listed.write_text("a\nb\nc\n")
    assert flaky.report() == 1
    assert "3 flaky tests in one run" in capsys.readouterr().out


def test_a_run_without_failures_has_no_flaky_tests(capsys: pytest.CaptureFixture[str]) -> None:
    assert flaky.report() == 0
    assert capsys.readouterr().out == ""
