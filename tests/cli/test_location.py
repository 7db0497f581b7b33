"""Commands find the store by the rule of an app, say which it was, and make none that was not named."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import Terminal, process

DEFAULT = "from windlass import App\napp = App()\n@app.task\ndef work() -> None: ...\n"
NAMED = DEFAULT.replace("App()", "App('sqlite:///shop.db')")


@pytest.fixture
def empty(terminal: Terminal) -> Terminal:
    """A terminal in a folder without anything."""
    for path in terminal.folder.iterdir():
        if path.is_file():
            path.unlink()
        else:
            path.rmdir()
    return terminal


def files(terminal: Terminal) -> set[str]:
    """Databases, and whatever else a store makes."""
    return {path.name for path in terminal.folder.iterdir() if path.suffix not in (".py", ".toml")} - {"__pycache__"}


MAKERS = [["enqueue", "t"], ["migrate"], ["coordinator"], ["schedules", "add", "s", "t", "--every", "1h"]]
LOOKERS = [["stats"], ["jobs", "list"], ["top", "--once"], ["queues", "pause", "mail"]]


@pytest.mark.parametrize("words", [*MAKERS, *LOOKERS], ids=" ".join)
def test_no_command_makes_a_store_that_was_not_named(empty: Terminal, words: list[str]) -> None:
    ran = empty.run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert f"none was named, and no such file: {empty.folder}/windlass.db" in ran.err
    assert "name one: --store sqlite:///jobs.db" in ran.err
    assert list(empty.folder.iterdir()) == []
    assert ("--app module:object" in ran.err) is (words != ["coordinator"])  # it has no such option


@pytest.mark.parametrize("words", [["enqueue", "work"], *LOOKERS], ids=" ".join)
def test_an_app_that_names_no_store_does_not_make_a_command_make_one(empty: Terminal, words: list[str]) -> None:
    (empty.folder / "unnamed_shop.py").write_text(DEFAULT)
    ran = empty.run(*words, "--app", "unnamed_shop:app")
    assert (ran.code, ran.out) == (2, "")
    assert "names a store, unnamed_shop:app names none" in ran.err
    assert files(empty) == set()


def test_migrate_makes_the_store_of_an_app_also_at_the_default_place(empty: Terminal) -> None:
    (empty.folder / "migrated_shop.py").write_text(DEFAULT)
    empty.ok("migrate", "--app", "migrated_shop:app")
    empty.ok("enqueue", "work", "--app", "migrated_shop:app")
    assert empty.ok("stats", "--json").json["totals"]["pending"] == 1, "what is at the default place is found"


@pytest.mark.parametrize("by", ["flag", "variable", "file", "app"])
def test_enqueue_makes_a_store_that_was_named(empty: Terminal, monkeypatch: pytest.MonkeyPatch, by: str) -> None:
    (empty.folder / "named_shop.py").write_text(NAMED)
    if by == "variable":
        monkeypatch.setenv("WINDLASS_STORE", "sqlite:///shop.db")
    if by == "file":
        (empty.folder / "windlass.toml").write_text("store = 'sqlite:///shop.db'\n")
    options = {"flag": ["--store", "sqlite:///shop.db"], "app": ["--app", "named_shop:app"]}
    empty.ok("enqueue", "work", *options.get(by, []))
    assert "shop.db" in files(empty)
    assert "windlass.db" not in files(empty)


@pytest.mark.parametrize("name", ["WINDLASS_STORE", "WINDLASS_APP"])
@pytest.mark.parametrize("words", [["enqueue", "t"], ["stats"], ["doctor"]], ids=" ".join)
def test_a_variable_that_is_set_but_empty_is_refused(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, name: str, words: list[str]
) -> None:
    monkeypatch.setenv(name, "")
    ran = terminal.run(*words)
    assert (ran.code, ran.err) == (2, f"error: {name} is set but empty: give it a value, or leave it out\n")


def test_a_flag_that_is_empty_is_refused(terminal: Terminal) -> None:
    ran = terminal.run("stats", "--store", "")
    assert (ran.code, ran.err) == (2, "error: --store is set but empty: give it a value, or leave it out\n")


def test_a_flag_wins_over_variables_that_are_empty(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WINDLASS_STORE", "WINDLASS_APP"):
        monkeypatch.setenv(name, "")
    assert terminal.ok("stats", "--store", "sqlite:///windlass.db").code == 0


def test_a_worker_refuses_an_empty_variable_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(DEFAULT)
    for words in (["worker", "shop:app", "--until-empty"], ["enqueue", "work", "--app", "shop:app"]):
        ran = process(tmp_path, *words, WINDLASS_STORE="")
        assert ran.returncode != 0
        assert "WINDLASS_STORE is set but empty" in ran.stderr
        assert "Traceback" not in ran.stderr
        assert f"{tmp_path}/shop.py, line 2" in ran.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {"shop.py", "__pycache__"}


def test_the_flag_wins_over_the_store_of_the_app_whose_tasks_still_check(empty: Terminal) -> None:
    (empty.folder / "flagged_shop.py").write_text(NAMED)
    empty.ok("enqueue", "work", "--app", "flagged_shop:app", "--store", "sqlite:///flag.db")
    assert "shop.db" not in files(empty)
    assert empty.ok("stats", "--json", "--store", "sqlite:///flag.db").json["totals"]["pending"] == 1
    ran = empty.run("enqueue", "wrok", "--app", "flagged_shop:app", "--store", "sqlite:///flag.db")
    assert (ran.code, "no task of type 'wrok'" in ran.err) == (2, True)


def test_the_flag_wins_over_the_app_though_the_variable_says_the_same(
    empty: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    (empty.folder / "twice_shop.py").write_text(NAMED)
    monkeypatch.setenv("WINDLASS_STORE", "sqlite:///flag.db")
    empty.ok("enqueue", "work", "--app", "twice_shop:app", "--store", "sqlite:///flag.db")
    assert "flag.db" in files(empty)
    assert "shop.db" not in files(empty)


def test_the_app_wins_over_the_variable(empty: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    (empty.folder / "steady_shop.py").write_text(NAMED)
    monkeypatch.setenv("WINDLASS_STORE", "sqlite:///variable.db")
    empty.ok("enqueue", "work", "--app", "steady_shop:app")
    assert "shop.db" in files(empty)
    assert "variable.db" not in files(empty)


def test_the_doctor_says_which_store_it_is_and_what_named_it(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reported(*words: str) -> tuple[str, str]:
        ran = terminal.run("doctor", "--json", *words)
        return ran.json["store"].rpartition("/")[2], ran.json["found_by"]

    folder = terminal.folder
    assert reported() == ("windlass.db", "the default: nothing names a store")
    (folder / "pyproject.toml").write_text("[tool.windlass]\nstore = 'sqlite:///project.db'\n")
    assert reported() == ("project.db", f"named by store in {folder}/pyproject.toml")
    (folder / "windlass.toml").write_text("store = 'sqlite:///own.db'\n")
    assert reported() == ("own.db", f"named by store in {folder}/windlass.toml")
    monkeypatch.setenv("WINDLASS_STORE", "sqlite:///variable.db")
    assert reported() == ("variable.db", "named by WINDLASS_STORE")
    (folder / "examined_shop.py").write_text(NAMED)
    assert reported("--app", "examined_shop:app") == ("shop.db", "named by examined_shop:app")
    assert reported("--store", "sqlite:///flag.db") == ("flag.db", "named by --store")
    shown = terminal.run("doctor", "--store", "sqlite:///windlass.db").out.splitlines()[0]
    assert shown.endswith("/windlass.db (named by --store)")


def test_the_app_and_the_commands_find_the_same_store_by_the_file(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(DEFAULT)
    (tmp_path / "windlass.toml").write_text("store = 'sqlite:///jobs.db'\n")
    assert process(tmp_path, "enqueue", "work").returncode == 0
    ran = process(tmp_path, "worker", "shop:app", "--until-empty")
    assert ran.returncode == 0, ran.stderr
    assert '"completed": 1' in process(tmp_path, "stats", "--json").stdout
    assert not (tmp_path / "windlass.db").exists()


def test_a_command_in_a_folder_that_was_removed_says_so(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    leave = (
        "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.executable, [sys.executable, '-m', 'windlass', 'stats'])"
    )
    command = [sys.executable, "-c", leave]
    ran = subprocess.run(
        command, cwd=tmp_path / "gone", env={}, capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 2, ran.stderr
    assert "sqlite:///windlass.db is relative, and the current folder was removed" in ran.stderr
    assert "Traceback" not in ran.stderr
