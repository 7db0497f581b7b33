"""The address of a PostgreSQL store: what may stand in it, and who gets to see it."""

from pathlib import Path
from urllib.parse import urlencode, urlsplit, urlunsplit

import asyncpg
import pytest

from tests.support.processes import Processes
from tests.support.servers.places import postgres_place
from windlass.errors import ConfigError
from windlass.store.open import open_store
from windlass.store.postgres.connection.address import LIBPQ, parse_address

VALUES = {"sslmode": "prefer", "sslnegotiation": "postgres", "gsslib": "gssapi", "target_session_attrs": "any"}


@pytest.mark.parametrize("option", LIBPQ)
async def test_every_option_that_is_taken_is_one_that_the_driver_takes(tmp_path: Path, option: str) -> None:
    options = {"sslmode": "disable", option: VALUES.get(option, "none")}  # without TLS no file is looked for
    address = f"{postgres_place(tmp_path)}?{urlencode(options)}"
    connection = await asyncpg.connect(parse_address(address, "here").dsn)
    assert await connection.fetchval("SELECT 1") == 1
    await connection.close()


@pytest.mark.parametrize("option", ["connect_timeout=3", "application_name=shop", "options=-cjit%3Doff", "port=5432"])
def test_an_option_that_would_do_nothing_is_refused(option: str) -> None:
    with pytest.raises(ConfigError, match=rf"unknown option '{option.partition('=')[0]}'"):
        open_store(f"postgresql://localhost/shop?{option}")


def test_a_worker_does_not_tell_the_password(tmp_path: Path) -> None:
    parts = urlsplit(postgres_place(tmp_path))
    address = urlunsplit(parts._replace(netloc=f"{parts.username}:open-sesame@{parts.hostname}:{parts.port}"))
    (tmp_path / "shop.py").write_text(f"from windlass import App\napp = App({address!r})\n@app.task\ndef p(): ...\n")
    processes = Processes(tmp_path)
    try:
        worker = processes.start("worker", "-m", "windlass", "worker", "shop:app", "--until-empty")
        assert worker.wait() == 0
        assert "serves default with 1 × 10 slots on postgresql://" in worker.output
        assert "open-sesame" not in worker.output
    finally:
        processes.end()


ATTRS = "?target_session_attrs=read-write"


@pytest.mark.parametrize(
    ("address", "hosts"),
    [
        ("postgresql://db/jobs", ["postgresql://db/jobs"]),
        ("postgresql:///jobs", ["postgresql:///jobs"]),
        (f"postgresql://a,b:5433/jobs{ATTRS}", [f"postgresql://a/jobs{ATTRS}", f"postgresql://b:5433/jobs{ATTRS}"]),
        ("postgresql://me:pw@a:1,[::1]:2/jobs", ["postgresql://me:pw@a:1/jobs", "postgresql://me:pw@[::1]:2/jobs"]),
    ],
)
def test_each_host_has_an_address_of_its_own(address: str, hosts: list[str]) -> None:
    assert parse_address(address, address).hosts == hosts
