"""Statements and scripts are read together, at the first use: later there may be no descriptor to read one with."""

import subprocess
import sys

import pytest

READ = """
import resource
from windlass.store.{home}
{read}("claim")
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
assert {read}("admit")
"""


@pytest.mark.parametrize(
    ("home", "read"),
    [
        ("sqlite.db import sql", "sql"),
        ("sql.statements import statements_of", "statements_of('postgres').__getitem__"),
        ("redis.scripts.loader import script", "script"),
    ],
)
def test_after_the_first_statement_no_file_is_opened_for_another(home: str, read: str) -> None:
    program = READ.format(home=home, read=read)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
