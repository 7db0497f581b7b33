"""What YugabyteDB lacks is in no statement of its profile."""

import re
from importlib import resources
from pathlib import Path

import pytest

from windlass.store.postgres.connection.profile import PLAIN, YUGABYTEDB, for_each_bucket
from windlass.store.postgres.migrate import migrations
from windlass.store.postgres.migrate_stepwise import statements_in
from windlass.store.sql.statements import statements_of

BANNED = re.compile(
    r"\b(ctid|xmin|xmax|pg_snapshot\w*|pg_current_snapshot|pg_current_xact_id\w*|txid_\w+|pg_notify|LISTEN|NOTIFY"
    r"|pg_advisory\w*|pg_try_advisory\w*|LOCK\s+TABLE|TRUNCATE|PARTITION\s+(?:BY|OF)|UNLOGGED|pg_stat_get\w*|brin)\b",
    re.IGNORECASE,
)
EXAMINED = {"examine_snapshots", "examine_dead_rows", "examine_rights", "schema_locks"}
"""Of `doctor`, and only on a plain PostgreSQL, and of migrations that wait for locks."""
STATEMENTS = statements_of("postgres", YUGABYTEDB.name)


@pytest.mark.parametrize("name", sorted(STATEMENTS.keys() - EXAMINED))
def test_no_statement_of_the_profile_uses_what_it_lacks(name: str) -> None:
    text = YUGABYTEDB.filled(for_each_bucket(STATEMENTS[name], 2))
    assert BANNED.findall(_without_windows(text)) == []


GENERATED = re.compile(r"UPDATE windlass\.(?:jobs|history|tombstones)\b.*?(?=\bRETURNING\b|\Z)", re.DOTALL)
BY_ONE_KEY = re.compile(r"\bid = (?::\w+(?:::uuid)?|'[^']*')(?!\w)")


@pytest.mark.parametrize("name", sorted(STATEMENTS))
def test_no_statement_updates_one_row_by_its_key_where_columns_are_generated(name: str) -> None:
    """YugabyteDB's shortcut for such an update writes NULL for `status = status` (its issue 33967)."""
    assert [text for text in GENERATED.findall(STATEMENTS[name]) if BY_ONE_KEY.search(text)] == []


def test_an_update_of_one_row_by_its_key_would_be_found() -> None:
    (text,) = GENERATED.findall("UPDATE windlass.jobs SET status = status WHERE id = :id::uuid")
    assert BY_ONE_KEY.search(text)


def test_plain_statements_use_it_so_that_the_search_finds_something() -> None:
    found = {word for text in statements_of("postgres").values() for word in BANNED.findall(PLAIN.filled(text))}
    assert {"ctid", "pg_notify", "pg_snapshot_xmin", "pg_current_xact_id"} <= found


def replaced() -> set[str]:
    """Statements with a text of the profile's own."""
    folder = Path(str(resources.files("windlass.store.postgres")))
    files = folder.rglob("*.yugabyte.sql")
    return {name for path in files for name in re.findall(r"^-- replaces: (\w+)$", path.read_text(), re.MULTILINE)}


def test_a_statement_that_replaces_another_differs_from_it() -> None:
    shared = statements_of("postgres")
    assert [name for name in replaced() if _spaced(STATEMENTS[name]) == _spaced(shared[name])] == []


def test_the_decision_says_how_many_statements_differ() -> None:
    shared = statements_of("postgres")
    parts = [name for name in shared.keys() - replaced() if _spaced(STATEMENTS[name]) != _spaced(shared[name])]
    decision = Path(__file__).parents[2] / "docs" / "decisions" / "0079-yugabytedb-as-a-profile.md"
    text = _spaced(decision.read_text())
    assert f"its own text of {len(replaced())} statements" in text
    assert f"{len(STATEMENTS.keys() - shared.keys())} more, small parts of {len(parts)} others" in text


@pytest.mark.parametrize("cluster", [True, False])
def test_no_migration_of_the_profile_uses_what_it_lacks(cluster: bool) -> None:
    texts = [text for step in migrations(YUGABYTEDB) for text in statements_in(step.text, 4, cluster=cluster)]
    assert len(texts) > 50
    assert [found for text in texts if (found := BANNED.findall(text))] == []


def test_every_statement_of_a_migration_can_be_repeated() -> None:
    texts = [text for step in migrations(YUGABYTEDB) for text in statements_in(step.text, 4, cluster=True)]
    repeatable = re.compile(
        r"CREATE OR REPLACE |CREATE TABLE IF NOT EXISTS |CREATE (?:UNIQUE )?INDEX NONCONCURRENTLY IF NOT EXISTS |"
        r".*\sON CONFLICT ",
        re.DOTALL,
    )
    assert [text for text in texts if not repeatable.match(text)] == []


def test_a_table_of_the_profile_takes_its_columns_from_the_other_schema() -> None:
    texts = statements_in("CREATE TABLE a (x int, COLUMNS OF notes AFTER job, y int);", 4, cluster=True)
    assert list(map(_spaced, texts)) == ["CREATE TABLE a (x int, progress text, logs text, y int)"]
    texts = statements_in("CREATE TABLE a (COLUMNS OF notes, PRIMARY KEY (job HASH));", 4, cluster=False)
    assert list(map(_spaced, texts)) == [
        "CREATE TABLE a (job uuid NOT NULL, progress text, logs text, PRIMARY KEY (job))"
    ]


def test_an_index_is_there_whole_or_not_at_all() -> None:
    texts = [text for step in migrations(YUGABYTEDB) for text in statements_in(step.text, 4, cluster=True)]
    indexes = [text for text in texts if re.match(r"CREATE (?:UNIQUE )?INDEX\b", text)]
    assert len(indexes) > 20
    assert [text for text in indexes if " INDEX NONCONCURRENTLY IF NOT EXISTS " not in text] == []


def test_indexes_that_begin_with_the_bucket_are_split_between_the_buckets() -> None:
    texts = [text for step in migrations(YUGABYTEDB) for text in statements_in(step.text, 3, cluster=True)]
    bucketed = [text for text in texts if "(bucket ASC, " in text]
    assert len(bucketed) == 8
    assert [text for text in bucketed if "SPLIT AT VALUES ((1), (2))" not in text] == []


def test_every_key_says_whether_it_is_hashed_or_ordered() -> None:
    texts = [text for step in migrations(YUGABYTEDB) for text in statements_in(step.text, 3, cluster=True)]
    keys = [key for text in texts for key in re.findall(r"PRIMARY KEY \((.*)\)\n?\)", text)]
    assert len(keys) > 25
    assert [key for key in keys if not all(part.endswith((" ASC", " HASH")) for part in _parts(key))] == []


def test_a_plain_postgresql_gets_none_of_the_words_of_the_cluster() -> None:
    texts = [text for step in migrations(YUGABYTEDB) for text in statements_in(step.text, 4, cluster=False)]
    assert [text for text in texts if re.search(r"\bSPLIT\b|\bHASH\b|\bNONCONCURRENTLY\b", text)] == []


def test_the_part_for_each_bucket_is_repeated_as_a_union() -> None:
    assert for_each_bucket("a /*each*/(:bucket, :buckets)/*end*/ b", 2) == "a (0, :buckets) UNION ALL (1, :buckets) b"


def _without_windows(text: str) -> str:
    return re.sub(r"OVER \(PARTITION BY", "OVER (", text)


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _parts(key: str) -> list[str]:
    return re.split(r", (?![^(]*\))", key)
