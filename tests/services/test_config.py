"""A worker's settings, and the app that it loads."""

import sys
from pathlib import Path
from typing import Any

import pytest

from windlass import ConfigError
from windlass.cli.parse import parse_host
from windlass.core.moments import SECOND
from windlass.worker.config import WorkerConfig, parse_queues
from windlass.worker.load import load_app


def test_the_defaults_are_fine() -> None:
    config = WorkerConfig(app="shop:app")
    assert (list(config.problems()), config.checked()) == ([], config)
    assert (config.concurrency, config.processes, config.lease, config.drain) == (10, 1, 30 * SECOND, 30 * SECOND)


def test_a_beat_is_a_third_of_the_lease() -> None:
    assert WorkerConfig(app="x", lease=30 * SECOND).beat == 10 * SECOND


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"concurrency": 0}, "--concurrency must be from 1 to 10000, not 0"),
        ({"concurrency": 10_001}, "--concurrency must be from 1 to 10000, not 10001"),
        ({"processes": 0}, "--processes must be from 1 to 256, not 0"),
        ({"processes": 257}, "--processes must be from 1 to 256, not 257"),
        ({"lease": SECOND // 2 - 1}, "--lease must be at least 500ms"),
        ({"queues": {"a": 0}}, r"--queues a:0 must be from 1 to --concurrency \(10\)"),
        ({"queues": {"a": 11}}, r"--queues a:11 must be from 1 to --concurrency \(10\)"),
    ],
)
def test_a_setting_that_cannot_work_is_refused(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        WorkerConfig(app="x", **fields).checked()


def test_all_problems_are_listed_together() -> None:
    with pytest.raises(ConfigError) as caught:
        WorkerConfig(app="x", concurrency=0, processes=0, lease=0, queues={"a": 5}).checked()
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize(
    ("text", "queues"),
    [
        ("mail", {"mail": None}),
        ("mail,images:4", {"mail": None, "images": 4}),
        (" mail , images:4 ", {"mail": None, "images": 4}),
        ("b,a", {"b": None, "a": None}),
    ],
)
def test_queues_are_read_in_their_order(text: str, queues: dict[str, int | None]) -> None:
    parsed = parse_queues(text.split(","))
    assert (parsed, list(parsed)) == (queues, list(queues))


@pytest.mark.parametrize(
    "text", ["", ",", "a,", "a b", "a:", "a:x", "a:-1", "a:1.5", "a,a", "a:1,a:2", "a:1:2", "../x"]
)
def test_queues_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--queues"):
        parse_queues(text.split(","))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8322", ("127.0.0.1", 8322)),
        ("[::1]:80", ("::1", 80)),
        (":0", ("", 0)),
        ("here:65535", ("here", 65535)),
    ],
)
def test_a_health_address_is_read(text: str, address: tuple[str, int]) -> None:
    assert parse_host(text) == address


@pytest.mark.parametrize("text", ["", "8322", "here", "here:", "here:x", "here:65536", "here:-1"])
def test_a_health_address_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="should be HOST:PORT"):
        parse_host(text)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a package in it, as the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    (tmp_path / "shop_of_tests").mkdir()
    (tmp_path / "shop_of_tests" / "__init__.py").write_text("")
    (tmp_path / "shop_of_tests" / "jobs.py").write_text(
        "from windlass import App\napp = App()\nclass Place:\n    app = app\nmake = lambda: app\n"
    )
    (tmp_path / "shop_of_tests" / "typo.py").write_text("import no_such_thing\n")
    (tmp_path / "shop_of_tests" / "wrong.py").write_text("1 / 0\n")
    return tmp_path


def test_an_app_is_loaded_from_the_current_folder(shop: Path) -> None:
    assert load_app("shop_of_tests.jobs:app") is load_app("shop_of_tests.jobs:Place.app")


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("shop_of_tests.jobs", "should be module:object, such as shop.jobs:app"),
        ("shop_of_tests.jobs:", "should be module:object"),
        (":app", "should be module:object"),
        ("", "should be module:object"),
        ("no_such_shop:app", "there is no module 'no_such_shop' here"),
        ("shop_of_tests.nothing:app", "there is no module 'shop_of_tests.nothing' here"),
        ("shop_of_tests.jobs:nothing", "module 'shop_of_tests.jobs' has no 'nothing'"),
        ("shop_of_tests.jobs:Place.nothing", r"has no 'Place\.nothing'"),
        ("shop_of_tests.jobs:make", "is function, not a windlass.App"),
    ],
)
def test_what_cannot_be_loaded_is_explained(shop: Path, path: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        load_app(path)


def test_a_mistake_inside_the_module_is_passed_on_as_it_is(shop: Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_thing"):
        load_app("shop_of_tests.typo:app")
    with pytest.raises(ZeroDivisionError):
        load_app("shop_of_tests.wrong:app")
