"""Every test's folder has a database of its own, and old ones do not pile up."""

from pathlib import Path

import pytest

from tests.support.servers import places
from tests.support.servers.address import Address
from tests.support.servers.places import Places, postgres_place


def names(server: Address) -> set[str]:
    return {name for (name,) in server.execute("SELECT datname FROM pg_database")}


def with_a_table(url: str) -> None:
    Address(url).execute("CREATE TABLE prepared AS SELECT 1 AS number")


def test_a_folder_is_always_the_same_place_and_another_folder_is_another(tmp_path: Path) -> None:
    first = postgres_place(tmp_path / "one")
    Address(first).execute("CREATE TABLE ours (number int)")
    assert postgres_place(tmp_path / "one") == first
    second = postgres_place(tmp_path / "two")
    assert Address(second).execute("SELECT to_regclass('ours')") == [(None,)]


def test_a_place_begins_as_it_was_prepared_and_that_once(tmp_path: Path) -> None:
    calls = []

    def prepare(url: str) -> None:
        calls.append(url)
        with_a_table(url)

    for name in ("one", "two"):
        place = Address(postgres_place(tmp_path / name, prepare))
        assert place.execute("SELECT number FROM prepared") == [(1,)]
        place.execute("DELETE FROM prepared")
    assert len(calls) == 1
    assert Address(postgres_place(tmp_path / "three")).execute("SELECT to_regclass('prepared')") == [(None,)]


def test_places_that_are_not_used_any_more_are_dropped(
    tmp_path: Path, postgres: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "KEPT", 2)
    others = Address(postgres_place(tmp_path / "others"))
    made = Places(postgres)
    assert others.execute("SELECT 1") == [(1,)], "what a run that lives has stays"
    try:
        urls = [made.of(tmp_path / "0", None)]
        with Address(urls[0]).connect():
            urls += [made.of(tmp_path / str(number), with_a_table) for number in range(1, 6)]
            here = [url.rpartition("/")[2] in names(postgres) for url in urls]
            assert here == [True, False, False, True, True, True], "the first is in use, and some are kept"
    finally:
        made.close()
    assert not {url.rpartition("/")[2] for url in urls} & names(postgres)
