"""Where settings come from: flags, then WINDLASS_ variables, then windlass.toml, then pyproject.toml."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import Terminal, process
from windlass.cli import dev, run
from windlass.worker.config import WorkerConfig

FROM_PROJECT = (
    "[tool.windlass]\nstore = 'sqlite:///project.db'\n[tool.windlass.worker]\nconcurrency = 4\nlease = '4s'\n"
)
FROM_OWN = "store = 'sqlite:///own.db'\n[worker]\nconcurrency = 3\nqueues = 'mail,images:2'\n"


def databases(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.db")}


def test_without_anything_the_store_is_windlass_db_here(terminal: Terminal) -> None:
    terminal.ok("migrate")
    assert databases(terminal.folder) == {"windlass.db"}


def test_a_flag_wins_over_a_variable_over_the_own_file_over_the_project(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    (terminal.folder / "pyproject.toml").write_text(FROM_PROJECT)
    terminal.ok("migrate")
    assert databases(terminal.folder) == {"windlass.db", "project.db"}
    (terminal.folder / "windlass.toml").write_text(FROM_OWN)
    terminal.ok("migrate")
    assert databases(terminal.folder) == {"windlass.db", "project.db", "own.db"}
    monkeypatch.setenv("WINDLASS_STORE", "sqlite:///variable.db")
    terminal.ok("migrate")
    assert databases(terminal.folder) == {"windlass.db", "project.db", "own.db", "variable.db"}
    terminal.ok("migrate", "--store", "sqlite:///flag.db")
    assert databases(terminal.folder) == {"windlass.db", "project.db", "own.db", "variable.db", "flag.db"}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[WorkerConfig]:
    """The workers that would have been started."""
    configs: list[WorkerConfig] = []

    async def work(config: WorkerConfig) -> int:
        configs.append(config)
        return 0

    monkeypatch.setattr(run, "_work", work)
    return configs


def test_a_worker_takes_its_options_from_the_same_places(
    terminal: Terminal, started: list[WorkerConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    (terminal.folder / "pyproject.toml").write_text(FROM_PROJECT)
    terminal.ok("worker", "shop:app")
    (terminal.folder / "windlass.toml").write_text(FROM_OWN)
    terminal.ok("worker", "shop:app")
    monkeypatch.setenv("WINDLASS_WORKER_CONCURRENCY", "2")
    terminal.ok("worker", "shop:app")
    terminal.ok("worker", "shop:app", "--concurrency", "5", "--queues", "default")
    assert [config.concurrency for config in started] == [4, 3, 2, 5]
    assert [config.lease for config in started] == [4_000_000, 30_000_000, 30_000_000, 30_000_000]
    named = {"mail": None, "images": 2}
    assert [config.queues for config in started] == [{}, named, named, {"default": None}]


def test_dev_takes_from_the_settings_of_a_worker_what_fits(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    developed: list[WorkerConfig] = []

    async def develop(config: WorkerConfig, port: int | None, opens: bool) -> int:
        developed.append(config)
        return 0

    monkeypatch.setattr(dev, "_develop", develop)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "")
    (terminal.folder / "windlass.toml").write_text("[worker]\nconcurrency = 3\ndrain = '9m'\nuntil_empty = true\n")
    monkeypatch.setenv("WINDLASS_WORKER_QUEUES", "mail")
    terminal.ok("dev", "shop:app", "--processes", "2")
    terminal.ok("dev", "shop:app", "--quiet", "--drain", "1s", "--concurrency", "4")
    first = WorkerConfig(
        app="shop:app", queues={"mail": None}, concurrency=3, processes=2, drain=5_000_000, verbose=True
    )
    second = WorkerConfig(app="shop:app", queues={"mail": None}, concurrency=4, drain=1_000_000)
    assert developed == [first, second]


def test_the_app_of_a_worker_may_come_from_a_variable(
    terminal: Terminal, started: list[WorkerConfig], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_APP", "shop:app")
    terminal.ok("worker", "--health", "127.0.0.1:0", "--drain", "1m", "--processes", "2", "--until-empty")
    assert started == [
        WorkerConfig(app="shop:app", processes=2, drain=60_000_000, health=("127.0.0.1", 0), until_empty=True)
    ]


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("windlass.toml", "store = ", "windlass.toml: "),
        ("windlass.toml", "store = 5", "settings: store should be a string, not 5"),
        ("windlass.toml", "blobs = 5", "settings: blobs should be a string, not 5"),
        ("windlass.toml", "worker = 'fast'", "settings: worker should be a table, not 'fast'"),
        ("windlass.toml", "\udcff", "windlass.toml: "),
        ("pyproject.toml", "[tool]\nwindlass = 3", "settings: windlass should be a table, not 3"),
        ("pyproject.toml", "tool = 3", "settings: tool should be a table, not 3"),
    ],
)
def test_a_settings_file_that_is_wrong_is_said(terminal: Terminal, file: str, text: str, problem: str) -> None:
    (terminal.folder / file).write_bytes(text.encode(errors="surrogateescape"))
    ran = terminal.run("stats")
    assert (ran.code, ran.out) == (2, "")
    assert problem in ran.err


def test_the_folder_of_blobs_comes_from_the_same_places(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    def kept() -> set[str]:
        terminal.ok("enqueue", "t", json.dumps({"text": "x" * 70_000}))
        return {path.parents[2].name for path in terminal.folder.rglob("payload.*")}

    assert "or give the app a folder for it" in terminal.run("enqueue", "t", json.dumps({"text": "x" * 70_000})).err
    (terminal.folder / "windlass.toml").write_text("blobs = './own'\n")
    assert kept() == {"own"}
    monkeypatch.setenv("WINDLASS_BLOBS", "variable")
    assert kept() == {"own", "variable"}


def test_a_wrong_worker_option_in_the_file_is_a_wrong_call(terminal: Terminal, started: list[Any]) -> None:
    (terminal.folder / "windlass.toml").write_text("[worker]\nconcurrency = 'many'\n")
    assert (terminal.run("worker", "shop:app").code, started) == (2, [])


def test_other_tables_of_a_project_file_are_none_of_our_business(terminal: Terminal) -> None:
    (terminal.folder / "pyproject.toml").write_text("[project]\nname = 'shop'\n")
    terminal.ok("migrate")
    assert databases(terminal.folder) == {"windlass.db"}


SHOP = """
from windlass import App
app = App("sqlite:///shop.db")

@app.task(queue="mail", priority=7)
def welcome(user_id: int, lang: str = "en") -> None: ...
"""


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (["welcome", '{"user_id": 42}'], 0, ""),
        (["welcome", '{"user_id": "42"}'], 2, "error: user_id: expected int, got str"),
        (["welcome", "{}"], 2, "error: user_id: is missing: welcome needs user_id"),
        (["wlecome", "{}"], 2, "error: no task of type 'wlecome'; did you mean 'welcome'? There are welcome"),
    ],
)
def test_with_an_app_its_store_and_its_tasks_are_used(
    tmp_path: Path, words: list[str], code: int, problem: str
) -> None:
    (tmp_path / "shop.py").write_text(SHOP)
    ran = process(tmp_path, "enqueue", *words, "--app", "shop:app")
    assert (ran.returncode, problem in ran.stderr, "Traceback" in ran.stderr) == (code, True, False)
    if code == 0:
        listed = process(tmp_path, "jobs", "list", "--json", WINDLASS_STORE="sqlite:///shop.db")
        (job,) = json.loads(listed.stdout)
        assert (job["queue"], job["priority"], job["payload"]) == ("mail", 7, {"user_id": 42})
