"""windlass doctor on stores that can be opened: what it finds in them, what it says, and how it ends."""

import time
from pathlib import Path

import apsw
import pytest

from tests.cli.terminal import Ran, Terminal
from windlass.core.moments import DAY
from windlass.store.sqlite.doctor.examine import MAX_COUNTED


def levels(ran: Ran, check: str) -> list[str]:
    """The levels of the findings of one check."""
    return [each["level"] for each in ran.json["findings"] if each["check"] == check]


def says(ran: Ran, level: str) -> str:
    return "\n".join(each["says"] for each in ran.json["findings"] if each["level"] == level)


def change(path: Path, statement: str) -> None:
    """What another program does to the file."""
    database = apsw.Connection(str(path))
    database.execute(statement)
    database.close()


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_a_healthy_store_has_no_problems_and_says_what_was_checked(terminal: Terminal) -> None:
    ran = terminal.ok("doctor")
    last = ran.out.strip().splitlines()[-1]
    assert last.startswith("no problems")
    for check in (
        "versions",
        "durability",
        "file system",
        "disk",
        "schema",
        "integrity",
        "clock",
        "workers",
        "leases",
    ):
        assert f"✓  {check}" in ran.out or f"·  {check}" in ran.out or f"!  {check}" in ran.out
        assert check in last


def test_programs_get_the_same_as_json(terminal: Terminal) -> None:
    ran = terminal.ok("doctor", "--json")
    assert (ran.json["healthy"], ran.json["store"]) == (True, f"sqlite:///{terminal.folder}/windlass.db")
    assert {each["level"] for each in ran.json["findings"]} <= {"ok", "note", "warning"}
    assert all(set(each) == {"level", "check", "says", "advice"} for each in ran.json["findings"])


def test_nothing_is_made_or_changed(terminal: Terminal) -> None:
    terminal.enqueue()
    before = files(terminal.folder)
    terminal.run("doctor")
    terminal.run("doctor", "--deep")
    terminal.run("doctor", "--store", "sqlite:///elsewhere.db")
    terminal.run("doctor", "--store", "sqlite:///no/such/folder.db")
    assert files(terminal.folder) == before


def test_a_store_that_is_in_use_is_looked_at_with_its_log(terminal: Terminal) -> None:
    reader = apsw.Connection("windlass.db")
    reader.execute("SELECT count(*) FROM windlass_jobs").fetchall()
    terminal.enqueue("mail")
    assert (terminal.folder / "windlass.db-wal").stat().st_size
    ran = terminal.run("doctor", "--json")
    reader.close()
    assert "1 job could run now, and no worker is alive" in says(ran, "problem")


def test_jobs_without_any_worker_are_a_problem_and_end_with_1(terminal: Terminal) -> None:
    terminal.enqueue("mail")
    terminal.enqueue("mail", "--delay", "1h")
    ran = terminal.run("doctor")
    assert ran.code == 1
    assert "✗  workers" in ran.out
    assert "1 job could run now, and no worker is alive" in ran.out
    assert "→ start one: windlass worker module:app" in ran.out
    assert ran.out.strip().splitlines()[-1].startswith("1 problem, ")


def test_dead_letters_and_paused_queues_are_warnings_and_end_with_0(terminal: Terminal) -> None:
    terminal.enqueue("mail")
    terminal.ok("queues", "pause", "default")
    change(terminal.folder / "windlass.db", "INSERT INTO windlass_history_counts VALUES ('default', 'dead', 7)")
    ran = terminal.ok("doctor", "--json")
    assert "7 dead letters" in says(ran, "warning")
    assert "1 job waits in queue 'default', which is paused" in says(ran, "warning")


def test_relaxed_durability_is_a_warning_that_says_what_is_at_stake(terminal: Terminal) -> None:
    ran = terminal.ok("doctor", "--json", "--store", "sqlite:///windlass.db?durability=relaxed")
    assert levels(ran, "durability") == ["warning"]
    assert "a power cut may lose the jobs accepted last" in says(ran, "warning")


def test_a_newer_schema_is_a_problem_and_an_absent_one_a_warning(terminal: Terminal) -> None:
    path = terminal.folder / "windlass.db"
    change(path, "INSERT INTO windlass_schema (number, name) VALUES (9999, '9999_future')")
    ran = terminal.run("doctor", "--json")
    assert (ran.code, levels(ran, "schema")) == (1, ["problem"])
    assert "has step 9999_future, which this version of Windlass cannot work with" in says(ran, "problem")
    change(terminal.folder / "other.db", "CREATE TABLE mine (x)")
    ran = terminal.ok("doctor", "--json", "--store", "sqlite:///other.db")
    assert levels(ran, "schema") == ["warning"]
    assert "the schema does not exist yet; missing: 0001_initial" in says(ran, "warning")


def test_an_entry_from_the_future_is_a_problem(terminal: Terminal) -> None:
    terminal.enqueue("mail", "--delay", "1h")
    assert levels(terminal.ok("doctor", "--json"), "clock") == ["ok"]
    later = time.time_ns() // 1000 + 2 * DAY
    change(terminal.folder / "windlass.db", f"UPDATE windlass_jobs SET updated_at = {later}")
    ran = terminal.run("doctor", "--json")
    assert (ran.code, levels(ran, "clock")) == (1, ["problem"])
    assert "in the future: the clock was set back" in says(ran, "problem")


def test_a_worker_that_beats_on_another_machine_is_a_problem(terminal: Terminal) -> None:
    now = time.time_ns() // 1000
    info = '{"id":"w","host":"other-host","pid":1,"version":"0","queues":[],"types":[],"processes":1,"slots":1}'
    row = f"('w', '{info}', 'another boot', 1, {now}, {now})"
    change(terminal.folder / "windlass.db", f"INSERT INTO windlass_workers VALUES {row}")
    ran = terminal.run("doctor", "--json")
    assert (ran.code, levels(ran, "machine")) == (1, ["problem"])
    assert "a worker on other-host used this file" in says(ran, "problem")


def test_what_died_before_the_last_boot_is_no_other_machine(terminal: Terminal) -> None:
    change(
        terminal.folder / "windlass.db", "INSERT INTO windlass_workers VALUES ('w', '{}', 'another boot', 1, 1, 1)"
    )
    assert levels(terminal.ok("doctor", "--json"), "machine") == ["ok"]


def test_of_very_many_jobs_only_the_first_are_counted(terminal: Terminal) -> None:
    change(
        terminal.folder / "windlass.db",
        f"WITH RECURSIVE n (v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n LIMIT {MAX_COUNTED + 5}) "
        "INSERT INTO windlass_jobs (id, queue, type, payload, status, sort_priority, rank, run_at, max_attempts, "
        "created_at, updated_at) "
        "SELECT format('%08x', v), 'q', 't' || v % 3, '{}', 'pending', 0, v, v, 3, 0, 0 FROM n",
    )
    assert f"at least {MAX_COUNTED:,} jobs could run now" in says(terminal.run("doctor", "--json"), "problem")


def test_text_from_jobs_is_shown_and_not_obeyed(terminal: Terminal) -> None:
    terminal.ok("queues", "pause", "default")
    terminal.enqueue("mail")
    change(terminal.folder / "windlass.db", "UPDATE windlass_jobs SET queue = 'a' || char(27) || '[31m[red]'")
    ran = terminal.run("doctor", "--json")
    assert "\x1b" not in ran.out
    assert "\x1b" not in terminal.run("doctor").out


@pytest.mark.parametrize("words", [["--store", "mysql://me:hunter2@db/x"], ["--store", "sqlite:///x.db?speed=1"]])
def test_an_address_that_names_no_store_is_a_wrong_call(terminal: Terminal, words: list[str]) -> None:
    ran = terminal.run("doctor", *words)
    assert (ran.code, ran.out) == (2, "")
    assert "hunter2" not in ran.err


def test_the_store_of_an_app_is_found_through_it(terminal: Terminal) -> None:
    (terminal.folder / "doctored_shop.py").write_text("from windlass import App\napp = App('sqlite:///shop.db')\n")
    ran = terminal.run("doctor", "--app", "doctored_shop:app", "--json")
    assert (ran.code, ran.json["store"]) == (1, f"sqlite:///{terminal.folder}/shop.db")
    assert "there is no file" in says(ran, "problem")
    assert not (terminal.folder / "shop.db").exists()
