"""Second try for failed tests: `make test-failed`. A test that fails and then passes is flaky.

python -m tools.flaky [pytest arguments]   run the failures of the last run again, and list those that pass now
python -m tools.flaky --report             print the list; exit code 1 if it has MAX_FLAKY names
"""

import sys
from pathlib import Path

import pytest

MAX_FLAKY = 3
"""This many flaky tests in one run are a failure."""
LIST = Path(__file__).parents[1] / ".pytest_cache" / "flaky.txt"
"""One line per flaky test. `.ci/run` removes it at the start."""


class Passed:
    """A pytest plugin that collects the ids of tests that pass."""

    def __init__(self) -> None:
        self._failed: set[str] = set()
        self._ran: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)
        elif report.when == "call" and report.passed:
            self._ran[report.nodeid] = None

    def ids(self) -> list[str]:
        return [each for each in self._ran if each not in self._failed]


def try_again(arguments: list[str]) -> int:
    """pytest's exit code for the second try."""
    passed = Passed()
    code = pytest.main([*arguments, "--last-failed", "--last-failed-no-failures", "none"], plugins=[passed])
    LIST.parent.mkdir(exist_ok=True)
    with LIST.open("a") as file:
        file.writelines(
            f"{each} (Python {sys.version_info.major}.{sys.version_info.minor})\n" for each in passed.ids()
        )
    return int(code)


def report() -> int:
    """0 if there are few, 1 otherwise."""
    names = LIST.read_text().splitlines() if LIST.exists() else []
    for name in names:
        print(f"flaky: {name}")
    if len(names) >= MAX_FLAKY:
        print(f"{len(names)} flaky tests in one run: at most {MAX_FLAKY - 1} are tolerated")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(report() if sys.argv[1:] == ["--report"] else try_again(sys.argv[1:]))
