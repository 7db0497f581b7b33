"""Handlers that use Django's database go on after it was restarted."""

import json
import shutil

import pytest

from tests.e2e.stage import SHOP, Stage
from tests.support.servers.postgres import PostgresServer
from windlass import Job

TASKS = ("read", "read", "read", "read", "aread", "read_in_process")
DEFAULTS: dict[str, object] = {}
KEPT_AND_CHECKED = {"CONN_MAX_AGE": None, "CONN_HEALTH_CHECKS": True}


@pytest.fixture
def bank(stage: Stage, postgres_server: PostgresServer) -> Stage:
    pytest.importorskip("django")
    shutil.copy(SHOP.with_name("bank.py"), stage.folder / "bank.py")
    return stage


def work(bank: Stage, server: PostgresServer, settings: dict[str, object], *, fresh: bool) -> None:
    environment = {"BANK": server.dsn(), "BANK_SETTINGS": json.dumps(settings)}
    bank.processes.environment.update(environment | ({"BANK_FRESH": "1"} if fresh else {}))
    bank.worker("--concurrency", str(len(TASKS)), app="bank:app")


def ended(bank: Stage) -> list[Job]:
    """One job of each task, after its only attempt."""
    ids = [bank.enqueue_one(task, {"max_attempts": 1}) for task in TASKS]
    bank.until_finished()
    return [bank.job(id_) for id_ in ids]


@pytest.mark.parametrize("settings", [DEFAULTS, pytest.param(KEPT_AND_CHECKED, marks=pytest.mark.extended)])
def test_no_handler_fails_after_a_restart(
    bank: Stage, postgres_server: PostgresServer, settings: dict[str, object]
) -> None:
    work(bank, postgres_server, settings, fresh=True)
    assert [job.status for job in ended(bank)] == ["completed"] * len(TASKS)
    postgres_server.restart()
    assert [job.status for job in ended(bank)] == ["completed"] * len(TASKS)


@pytest.mark.extended
def test_without_it_every_handler_fails_after_a_restart(bank: Stage, postgres_server: PostgresServer) -> None:
    work(bank, postgres_server, DEFAULTS, fresh=False)
    assert [job.status for job in ended(bank)] == ["completed"] * len(TASKS)
    postgres_server.restart()
    assert [job.status for job in ended(bank)] == ["dead"] * len(TASKS)
    assert {job.error.message for job in ended(bank) if job.error} == {"the connection is closed"}
