"""The pytest plugin: fixtures that put your app into a sandbox.

A package of its own, because pytest loads it in every run where Windlass is installed: it must import nothing
of Windlass before a test uses a fixture, and a module inside `windlass` would import the package.

    [tool.pytest.ini_options]
    windlass_app = "shop.jobs:app"

    def test_a_welcome_is_sent(windlass_sandbox):
        sign_up("ann")
        assert len(windlass_sandbox.run_all().completed) == 1
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from windlass import App
    from windlass.testing import ManualClock, Sandbox


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("windlass_app", "The app that the fixture windlass_sandbox tests, as module:object.", default="")


@pytest.fixture
def windlass_app(pytestconfig: pytest.Config) -> "App":
    """The app under test: the one that the setting windlass_app names, unless you define a fixture of this name."""
    path = str(pytestconfig.getini("windlass_app"))
    if not path:
        pytest.fail(
            "windlass_sandbox does not know your app: set windlass_app to module:object in the pytest settings, "
            "or write a fixture windlass_app that returns it",
            pytrace=False,
        )
    from windlass import ConfigError
    from windlass.worker.load import load_app

    try:
        return load_app(path)
    except ConfigError as error:
        pytest.fail(f"windlass_app: {error}", pytrace=False)


@pytest.fixture
def windlass_sandbox(windlass_app: "App") -> "Iterator[Sandbox]":
    """The app under test, on an empty store in memory with a clock that stands still until it is moved."""
    from windlass.testing import sandbox

    with sandbox(windlass_app) as box:
        yield box


@pytest.fixture
def windlass_clock(windlass_sandbox: "Sandbox") -> "ManualClock":
    """The clock of the sandbox."""
    return windlass_sandbox.clock
