"""yugabyte:// opens only what the profile works on, and says why not."""

from pathlib import Path

import pytest

from tests.support.seed import enqueue_one
from tests.support.servers.address import Address
from tests.support.servers.places import postgres_place
from tests.support.stores import with_profile
from windlass.errors import ConfigError, SchemaMismatch, StoreUnavailable
from windlass.store.open import examine, open_store
from windlass.store.postgres.connection.address import parse_address
from windlass.store.postgres.connection.profile import DEFAULT_BUCKETS, YUGABYTEDB
from windlass.store.postgres.connection.requirements import isolation_problem, version_problem

NEW = "PostgreSQL 15.12-YB-2025.2.0.0-b131 on x86_64-pc-linux-gnu, compiled by clang version 17"
OLD = "PostgreSQL 11.2-YB-2024.2.3.0-b0 on x86_64-pc-linux-gnu, compiled by clang version 17"
PLAIN = "PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64-pc-linux-gnu"


def test_a_version_on_postgresql_15_is_accepted() -> None:
    assert version_problem(NEW, named=True) is None


def test_a_version_on_postgresql_11_is_refused_by_what_it_lacks() -> None:
    said = version_problem(OLD, named=True)
    assert said is not None
    assert "2024.2.3.0-b0 is based on PostgreSQL 11, and Windlass needs 15" in said


def test_a_plain_postgresql_is_refused_under_yugabyte_and_accepted_under_its_own_name() -> None:
    said = version_problem(PLAIN, named=True)
    assert said is not None
    assert "not YugabyteDB but PostgreSQL 15.14" in said
    assert version_problem(PLAIN, named=False) is None


def test_another_isolation_level_is_refused_with_the_flag_to_set() -> None:
    assert isolation_problem("read committed") is None
    said = isolation_problem("repeatable read")
    assert said is not None
    assert "yb_enable_read_committed_isolation=true" in said


async def test_opening_a_postgresql_as_yugabyte_creates_nothing_and_says_what_it_is(tmp_path: Path) -> None:
    place = postgres_place(tmp_path)
    store = open_store(place.replace("postgresql://", "yugabyte://", 1))
    with pytest.raises(StoreUnavailable, match="this is not YugabyteDB but PostgreSQL") as raised:
        await store.migrate()
    assert raised.value.lasting
    await store.close()
    other = open_store(f"{place}?profile=yugabyte")
    assert await other.migrate() == ["0001_yugabyte"]
    await other.close()


@pytest.mark.parametrize(
    ("version", "isolation", "says"),
    [
        (OLD, "read committed", "is based on PostgreSQL 11, and Windlass needs 15"),
        (NEW, "repeatable read", "get repeatable read: set the flag yb_enable_read_committed_isolation=true"),
    ],
)
async def test_a_server_that_answers_like_a_wrong_yugabytedb_is_refused_and_nothing_is_created(
    tmp_path: Path, version: str, isolation: str, says: str
) -> None:
    url = postgres_place(tmp_path)
    answers = {"version": version, "yb_get_effective_transaction_isolation_level": isolation}
    for name, text in answers.items():
        Address(url).execute(f"CREATE FUNCTION public.{name}() RETURNS text LANGUAGE sql AS $$ SELECT '{text}' $$")
    Address(url).execute(f"ALTER DATABASE {url.rpartition('/')[2]} SET search_path = public, pg_catalog")
    store = open_store(url.replace("postgresql://", "yugabyte://", 1))
    with pytest.raises(StoreUnavailable, match=says) as raised:
        await store.migrate()
    assert raised.value.lasting
    with pytest.raises(StoreUnavailable, match=says):
        await enqueue_one(store)
    await store.close()
    assert Address(url).execute("SELECT FROM pg_namespace WHERE nspname = 'windlass'") == []


async def test_doctor_says_that_a_postgresql_is_no_yugabytedb(tmp_path: Path) -> None:
    found = await examine(postgres_place(tmp_path).replace("postgresql://", "yugabyte://", 1))
    (problem,) = [each for each in found.findings if "this is not YugabyteDB but PostgreSQL" in each.says]
    assert problem.says.endswith("write postgresql:// for PostgreSQL")
    assert problem.advice == "or check host and port: YugabyteDB listens on 5433"


async def test_doctor_knows_the_profile_its_buckets_and_its_conflicts(url: str) -> None:
    store = open_store(url)
    await enqueue_one(store)
    await store.close()
    said = {each.check: each.says for each in (await examine(url)).findings}
    assert "profile on plain PostgreSQL" in said["cluster"]
    assert said["buckets"] == "4 of at most 64"
    assert said["conflicts"].startswith("in the last hour workers repeated 0 calls")


@pytest.mark.parametrize(("made", "opened"), [("", "?profile=yugabyte"), ("?profile=yugabyte", "")])
async def test_tables_of_the_other_profile_are_refused(tmp_path: Path, made: str, opened: str) -> None:
    place = postgres_place(tmp_path)
    store = open_store(place + made)
    await store.migrate()
    await store.close()
    wrong = open_store(place + opened)
    with pytest.raises(SchemaMismatch, match="the tables differ"):
        await wrong.migrate()
    await wrong.close()


def test_an_address_keeps_its_profile_for_another_process() -> None:
    for url in (
        "yugabyte://u@h:5433/d?buckets=32",
        "yugabyte://u@a:1,b:2/d?order=loose",
        "postgresql://u@h/d?profile=yugabyte&buckets=8",
        "yugabyte://u@h:5433/d?notify=on",
    ):
        address = parse_address(url, url)
        assert address.url == url
        assert address.profile is YUGABYTEDB


def test_yugabytedb_has_its_own_port_and_no_notifications() -> None:
    address = parse_address("yugabyte://u@a,b:7/d", "")
    assert address.dsn == "postgresql://u@a:5433,b:7/d"
    assert (address.notify, address.buckets, address.loose) == (False, None, False)
    assert DEFAULT_BUCKETS == 16


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("buckets=0", "buckets is a number from 1 to 64"),
        ("buckets=many", "buckets is a number from 1 to 64"),
        ("order=random", "order is strict or loose"),
        ("profile=oracle", "profile is yugabyte"),
    ],
)
def test_a_wrong_option_is_named_with_its_limit(options: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_address(f"yugabyte://u@h/d?{options}", "it")


def test_buckets_are_refused_without_the_profile() -> None:
    with pytest.raises(ConfigError, match="buckets and order are options of yugabyte://"):
        parse_address("postgresql://u@h/d?buckets=4", "it")


def test_the_profile_of_tests_names_its_buckets() -> None:
    assert with_profile("postgresql://h/d") == "postgresql://h/d?profile=yugabyte&buckets=4"
