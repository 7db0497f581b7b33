"""A user's mistake ends in a line that says what is wrong: never in a traceback, and nothing is stored."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from tests.cli.terminal import Terminal, process

NOBODY = str(uuid4())

WRONG_CALLS: dict[str, tuple[list[str], str]] = {
    "no such command": (["enqeue"], "No such command 'enqeue'"),
    "no such option": (["stats", "--jsno"], "No such option: --jsno"),
    "missing argument": (["jobs", "show"], "Missing argument"),
    "not JSON": (["enqueue", "t", "{user_id: 42}"], "error: payload: is not JSON"),
    "words": (["enqueue", "t", "user_id=1"], """(char 0); write it as '{"user_id": 42}'"""),
    "not an object": (["enqueue", "t", "[1]"], "error: payload: must be a JSON object, not list"),
    "a key twice": (["enqueue", "t", '{"a": 1, "a": 2}'], "error: payload: has a key twice"),
    "NaN": (["enqueue", "t", '{"a": NaN}'], "error: payload.a: nan is not JSON"),
    "1e999": (["enqueue", "t", '{"a": 1e999}'], "error: payload.a: inf is not JSON"),
    "2^63": (["enqueue", "t", f'{{"a": {2**63}}}'], "payload.a: is an integer beyond 64 bits; send it as a string"),
    "4301 digits": (["enqueue", "t", f'{{"a": {"9" * 4301}}}'], "payload.a: is an integer beyond 64 bits"),
    "deep": (["enqueue", "t", '{"a":' + "[" * 9000 + "]" * 9000 + "}"], "error: payload: is nested"),
    "lone surrogate": (["enqueue", "t", r'{"a": "\ud800"}'], "error: payload.a: contains a lone surrogate"),
    "bytes that are no text": (["enqueue", "t", '{"a": "\udcff"}'], "error: payload.a: contains a lone surrogate"),
    "too large": (["enqueue", "t", '{"a": "' + "x" * 70_000 + '"}'], "is 70,008 bytes of JSON, the limit is 65,536"),
    "bad type": (["enqueue", "os system"], "error: type: 'os system' is not"),
    "bad queue": (["enqueue", "t", "{}", "--queue", "a b"], "error: queue: 'a b' is not"),
    "bad priority": (["enqueue", "t", "{}", "--priority", "40000"], "error: priority: must be a whole number from"),
    "priority in words": (["enqueue", "t", "{}", "--priority", "high"], "Invalid value for '--priority'"),
    "bad delay": (["enqueue", "t", "{}", "--delay", "soon"], "error: --delay: 'soon' is not a duration"),
    "negative delay": (["enqueue", "t", "{}", "--delay", "-5s"], "error: --delay: "),
    "a delay of ages": (["enqueue", "t", "{}", "--delay", "9" * 400 + "d"], "error: --delay: "),
    "bad moment": (["enqueue", "t", "{}", "--run-at", "soon"], "error: --run-at: 'soon' is not a moment"),
    "a moment and a delay": (
        ["enqueue", "t", "{}", "--run-at", "2090-01-01", "--delay", "1s"],
        "error: delay: cannot be given together with run_at",
    ),
    "bad timeout": (["enqueue", "t", "{}", "--timeout", "long"], "error: --timeout: 'long' is not a duration"),
    "a worker without an app": (["worker"], "name your app: windlass worker shop:app, or WINDLASS_APP"),
    "a worker with two apps": (["worker", "x:app", "--app", "y:app"], "--app y:app: the app is named already, x:app"),
    "a server with two apps": (["serve", "x:app", "--app", "y:app"], "--app y:app: the app is named already, x:app"),
    "tokens through a server": (
        ["token", "list", "--store", "https://jobs.example.com"],
        "error: https://jobs.example.com is a REST server, and this command needs the store itself: use --store or",
    ),
    "bad tenant": (["jobs", "list", "--tenant", "a b"], "error: tenant: 'a b' is not"),
    "bad schedule": (["jobs", "list", "--schedule", "a b"], "error: schedule: 'a b' is not"),
    "prune without an app": (["schedules", "prune"], "error: --app: is needed"),
    "bad pause": (["queues", "pause", "q", "--for", "5 parsecs"], "error: --for: "),
    "bad retention": (["queues", "set", "q", "--keep-dead", "forever"], "--keep-dead: 'forever' is not a duration"),
    "bad budget": (["queues", "set", "q", "--max-attempts", "0"], "error: max_attempts: "),
    "bad back-off": (["queues", "set", "q", "--retry-base", "x"], "error: --retry-base: "),
    "bad queue name": (["queues", "resume", "../x"], "error: queue: "),
    "bad id": (["jobs", "show", "42"], "error: id: '42' is not a UUID"),
    "bad cursor": (["jobs", "list", "--cursor", "forged"], "error: cursor: 'forged' is not a UUID"),
    "bad status": (["jobs", "list", "--status", "done"], "error: status: 'done' is not one of scheduled, blocked"),
    "bad limit": (["jobs", "list", "--limit", "0"], "Invalid value for '--limit'"),
    "bad tag": (["jobs", "list", "--tag", "'"], "error: tag: "),
    "unknown store": (["stats", "--store", "mysql://me:hunter2@db/x"], "mysql://me:***@db/x: unknown store"),
    "bad address": (["stats", "--store", "sqlite://jobs.db"], "three or four slashes"),
    "bad address option": (["migrate", "--store", "sqlite:///x.db?speed=1"], "unknown option 'speed'"),
    "app without an object": (["enqueue", "t", "--app", "shop"], "error: 'shop' should be module:object"),
    "missing module": (["enqueue", "t", "--app", "no_such_shop:app"], "there is no module 'no_such_shop' here"),
    "missing object": (["enqueue", "t", "--app", "json:app"], "error: module 'json' has no 'app'"),
    "not an app": (["enqueue", "t", "--app", "json:dumps"], "error: json:dumps is function, not a windlass.App"),
    "no slots": (["worker", "x:app", "--concurrency", "0"], "error: --concurrency must be from 1 to 10000, not 0"),
    "bad lease": (["worker", "x:app", "--lease", "soon"], "error: --lease: 'soon' is not a duration"),
    "short lease": (["worker", "x:app", "--lease", "10ms"], "error: --lease must be at least 500ms"),
    "bad queues": (["worker", "x:app", "--queues", "a,a"], "error: --queues names 'a' twice"),
    "bad share": (["worker", "x:app", "--queues", "a:b"], "error: --queues: 'a:b' should be a name, or name:slots"),
    "bad health": (["worker", "x:app", "--health", "nowhere"], "error: --health 'nowhere' should be HOST:PORT"),
}


@pytest.mark.parametrize("mistake", WRONG_CALLS)
def test_a_wrong_call_ends_with_2_and_says_what_is_wrong(terminal: Terminal, mistake: str) -> None:
    words, problem = WRONG_CALLS[mistake]
    ran = terminal.run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert problem in " ".join(ran.err.replace("│", " ").split())
    assert "Traceback" not in ran.err
    assert "hunter2" not in ran.err
    assert len(ran.err) < 2000


FAILURES: dict[str, tuple[list[str], str]] = {
    "show nobody": (["jobs", "show", NOBODY], f"error: no job {NOBODY}"),
    "cancel nobody": (["jobs", "cancel", NOBODY], f"error: no job {NOBODY}"),
    "retry nobody": (["dead", "retry", NOBODY], f"error: no job {NOBODY}"),
    "delete nobody": (["jobs", "delete", NOBODY], f"error: no job {NOBODY}"),
    "no database": (["stats", "--store", "sqlite:///letter.txt"], "letter.txt is not an SQLite database"),
    "from the future": (["stats", "--store", "sqlite:///future.db"], "upgrade Windlass"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_what_cannot_be_done_ends_with_1_and_says_why(terminal: Terminal, failure: str) -> None:
    (terminal.folder / "letter.txt").write_text("Dear reader, " * 1000)
    terminal.ok("migrate", "--store", "sqlite:///future.db")
    connection = sqlite3.connect(terminal.folder / "future.db")
    with connection:
        connection.execute("INSERT INTO windlass_schema (number, name) VALUES (9999, '9999_future')")
    connection.close()
    words, problem = FAILURES[failure]
    ran = terminal.run(*words)
    assert (ran.code, ran.out) == (1, "")
    assert problem in ran.err
    assert "Traceback" not in ran.err


def test_a_missing_folder_is_said(terminal: Terminal) -> None:
    ran = terminal.run("migrate", "--store", "sqlite:///no/such/folder/jobs.db")
    assert ran.code == 2
    assert "there is no folder" in ran.err
    assert "no/such/folder" in ran.err
    assert not (terminal.folder / "no").exists()


@pytest.mark.parametrize(
    "words", [["stats"], ["jobs", "list"], ["dead", "retry", "--all"], ["queues", "pause", "mail"]]
)
def test_looking_at_a_store_that_is_not_there_makes_none(terminal: Terminal, words: list[str]) -> None:
    before = set(terminal.folder.iterdir())
    ran = terminal.run(*words, "--store", "sqlite:///typo.db")
    assert ran.code == 2
    path = terminal.folder / "typo.db"
    assert ran.err == f"error: there is no store: no such file: {path} (named by --store)\n"
    assert set(terminal.folder.iterdir()) == before


def test_a_program_that_named_no_store_is_told_how_to(terminal: Terminal) -> None:
    (terminal.folder / "windlass.db").unlink()
    ran, folder = terminal.run("stats"), terminal.folder
    assert ran.code == 2
    assert ran.err.splitlines() == [
        f"error: there is no store: none was named, and no such file: {folder}/windlass.db",
        f"       WINDLASS_STORE is not set, and no windlass.toml or pyproject.toml in {folder} names a store",
        "       name one: --store sqlite:///jobs.db, --app module:object, WINDLASS_STORE, or "
        'store = "sqlite:///jobs.db" in windlass.toml',
    ]


BROKEN = {
    "import stripee\n": "ModuleNotFoundError: No module named 'stripee'",
    "def app(:\n": "SyntaxError: invalid syntax",
    "import sys\nsys.exit('no licence')\n": "SystemExit: no licence",
}
WITH_APP = [["jobs", "list"], ["stats"], ["top", "--once"], ["doctor"], ["dead", "list"], ["enqueue", "t"]]


@pytest.mark.parametrize("code", BROKEN, ids=BROKEN.values())
@pytest.mark.parametrize("words", WITH_APP, ids=" ".join)
def test_an_app_that_cannot_be_imported_is_shown_without_our_own_frames(
    terminal: Terminal, words: list[str], code: str
) -> None:
    (terminal.folder / "broken_shop.py").write_text(code)
    ran = terminal.run(*words, "--app", "broken_shop:app")
    assert (ran.code, ran.out) == (2, "")
    lines = ran.err.splitlines()
    assert (lines[0], lines[-1].strip()) == ("error: importing broken_shop:app failed:", BROKEN[code])
    assert "broken_shop.py" in ran.err
    assert len(lines) <= 6


@pytest.mark.parametrize("verb", ["retry", "delete"])
def test_a_move_that_is_not_allowed_now_ends_with_1(terminal: Terminal, verb: str) -> None:
    id_ = terminal.enqueue()
    ran = terminal.run("jobs", verb, id_)
    assert (ran.code, ran.err) == (1, f"error: cannot {verb} job {id_}: it is pending\n")


def test_nothing_is_stored_by_a_wrong_call(terminal: Terminal) -> None:
    for words, _ in WRONG_CALLS.values():
        terminal.run(*words)
    assert terminal.ok("stats", "--json").json["queues"] == {}


def test_help_is_no_mistake(terminal: Terminal) -> None:
    for words in (["--help"], ["-h"], ["jobs", "--help"], ["worker", "-h"]):
        assert "Usage: " in terminal.ok(*words).out
    bare = terminal.run()
    assert "Usage: " in bare.out + bare.err


@pytest.mark.parametrize(
    ("words", "code"),
    [(["stats"], 0), (["jobs", "show", NOBODY], 1), (["jobs", "show", "42"], 2), (["worker", "no_such_shop:app"], 2)],
)
def test_a_process_of_its_own_ends_with_the_same_codes(tmp_path: Path, words: list[str], code: int) -> None:
    process(tmp_path, "migrate", "--store", "sqlite:///windlass.db")
    ran = process(tmp_path, *words)
    assert ran.returncode == code, ran.stderr
    assert "Traceback" not in ran.stderr


def test_a_reader_that_has_had_enough_is_no_error_to_shout_about(tmp_path: Path) -> None:
    process(tmp_path, "migrate", "--store", "sqlite:///windlass.db")
    ours, theirs = os.pipe()
    os.close(ours)
    command = [sys.executable, "-m", "windlass", "stats", "--json"]
    ran = subprocess.run(
        command, cwd=tmp_path, env={}, stdout=theirs, stderr=subprocess.PIPE, check=False, timeout=60
    )
    os.close(theirs)
    assert (ran.returncode, ran.stderr) == (1, b"")
