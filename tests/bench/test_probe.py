"""The probes, in a process of their own, as in a runner."""

import subprocess
import sys
from pathlib import Path

from bench.probes.probe import read_count

from tests.bench.command import environment

COUNTED = """
import sys, pathlib, apsw
from bench.probes.probe import count_commits
count_commits(pathlib.Path(sys.argv[1]))
connection = apsw.Connection(sys.argv[2])
connection.execute("CREATE TABLE t (a)")
for n in range(11):
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO t VALUES (?)", (n,))
    connection.execute("COMMIT")
connection.execute("BEGIN")
connection.execute("SELECT * FROM t").fetchall()
connection.execute("COMMIT")
connection.execute("BEGIN IMMEDIATE")
connection.execute("ROLLBACK")
"""


def test_commits_that_write_are_counted_and_no_others(tmp_path: Path) -> None:
    count, database = tmp_path / "count", tmp_path / "t.db"
    subprocess.run(
        [sys.executable, "-c", COUNTED, str(count), str(database)],
        env=environment(),
        check=True,
    )
    assert read_count(count) == 12  # one for the table
    assert read_count(tmp_path / "nothing") == 0
