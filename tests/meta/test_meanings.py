"""Words with one meaning: a bucket is a part of an index, a slot belongs to a runner, and nothing is named place."""

import re
from pathlib import Path

import pytest

from tests.meta.test_words import names, source_files
from tests.meta.tree import SOURCE, markdown_files, name_of

BUCKET = re.compile(r"(?<!token )(?<!token_)(?<!Token )(?<!TOKEN_)(?<!Token)(?<![a-z]_)bucket", re.IGNORECASE)
WITH_BUCKETS = {"store/open.py", "cli/run.py", "store/sql/session.py", "store/sql/read_jobs.py", "store/sqlite/db.py"}
"""Files outside of store/postgres that know the number of buckets of YugabyteDB's profile."""
PROMETHEUS = re.compile(r"\}_bucket|explicit_bucket_boundaries_advisory")
"""Names of other projects for a bin of a histogram."""
SLOT = re.compile(r"\bslots?\b")
OF_QUOTAS = {
    "limited_attempt.sql",
    "queue_limits.sql",
    "queues.postgres.sql",
    "0001_initial.sql",
    "0001_yugabyte.sql",
}
"""Statements on quotas, which count slots of runners."""
PAGES_WITH_BUCKETS = ("yugabyte", "buckets", "benchmarks", "many-machines", "which-store", "cookbook", "0082")


def _relative(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def _knows_buckets(path: Path) -> bool:
    name = _relative(path)
    return name.startswith("store/postgres/") or name.endswith(".postgres.sql") or name in WITH_BUCKETS


@pytest.mark.parametrize("folder", ["core", "client", "worker", "server", "observe", "store/sqlite", "store/redis"])
def test_a_bucket_without_tokens_is_a_part_of_an_index(folder: str) -> None:
    found = [
        f"{_relative(path)}:{number}"
        for path in source_files()
        if _relative(path).startswith(f"{folder}/") and not _knows_buckets(path)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if BUCKET.search(PROMETHEUS.sub("", line))
    ]
    assert found == []


def test_a_table_of_token_buckets_is_called_so() -> None:
    wrong = [name_of(path) for path in source_files() if re.search(r"windlass[._]buckets\b", path.read_text())]
    assert wrong == []


def test_a_slot_of_a_key_is_a_key_slot_in_statements_and_scripts() -> None:
    found = [
        f"{_relative(path)}:{number}"
        for path in source_files()
        if path.suffix in (".sql", ".lua") and path.name not in OF_QUOTAS and "doctor" not in path.parts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if SLOT.search(line.split("--")[0])
    ]
    assert found == []


PLACE = re.compile(r"(^|_)places?($|_)", re.IGNORECASE)
"""It was the index of an item, a member of a sorted set, a line of a file and a queue with a type."""


def _names_in(path: Path) -> set[str]:
    if path.suffix == ".py":
        return set(names(path))
    return set(re.findall(r"\w+", re.sub("--.*", "", path.read_text())))


def test_nothing_is_named_place() -> None:
    found = {name_of(path): {name for name in _names_in(path) if PLACE.search(name)} for path in source_files()}
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_a_bucket_in_the_documents_is_a_token_bucket_or_one_of_yugabytedb() -> None:
    pages = [
        path
        for path in markdown_files()
        if not any(word in path.as_posix() for word in PAGES_WITH_BUCKETS)
        and path.name not in ("CHANGELOG.md", "cli.md")
    ]
    prose = {name_of(path): re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(), flags=re.DOTALL) for path in pages}
    wrong = {
        name: line
        for name, text in prose.items()
        for line in text.splitlines()
        if re.search(r"(?<!oken )\bbuckets?\b", line)
    }
    assert {name: line for name, line in wrong.items() if "YugabyteDB" not in line and "0080" not in line} == {}
