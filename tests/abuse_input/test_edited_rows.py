"""Rows edited by hand: such a job is dead with a clear reason, and hides none of the others."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import stage
from tests.e2e.stage import Stage
from tests.support.addresses import on_every_store
from tests.support.inside import NOT_UTF8

__all__ = ["stage"]
pytestmark = on_every_store

PAYLOADS: dict[str, tuple[Any, str]] = {
    "20 pickle": (pickle.dumps({"a": 1}), "cannot be read"),
    "20 not JSON": ("{'a': 1}", "cannot be read"),
    "20 half of it": ('{"a": ', "cannot be read"),
    "20 nothing": ("", "cannot be read"),
    "20 not UTF-8": (NOT_UTF8, "cannot be read"),
    "20 a number": (42, "payload: "),
    "20 no reference": ("blob:v1:../../etc/passwd:1:" + "0" * 64, "cannot be read"),
    "24 not an object": ("[1]", "payload: "),
    "24 a wrong type": ('{"a": "1", "b": 2}', "a: expected int, got str"),
    "24 one missing": ('{"a": 1}', "b: is missing: add needs a, b"),
    "24 one too many": ('{"a": 1, "b": 2, "c": 3}', "c"),
}


def test_a_payload_that_cannot_be_read_makes_its_job_dead_and_the_others_run(stage: Stage) -> None:
    before = stage.enqueue("add", 5, a=1, b=2)
    spoilt = dict(zip(PAYLOADS, stage.enqueue("add", len(PAYLOADS), a=1, b=2), strict=True))
    after = stage.enqueue("add", 5, a=1, b=2)
    for row, id_ in spoilt.items():
        stage.inside.edit(id_, "payload", PAYLOADS[row][0])
    assert len(json.loads(stage.command("jobs", "list", "--json"))) == 10 + len(PAYLOADS)
    worker = stage.worker("--until-empty")
    assert worker.wait() == 0
    assert {stage.job(id_).status for id_ in before + after} == {"completed"}
    for row, id_ in spoilt.items():
        job = stage.job(id_)
        assert (job.status, job.attempt, job.failures) == ("dead", 1, 1), row
        assert job.error is not None
        assert PAYLOADS[row][1] in job.error.message, row
        assert job.reason == "the stored arguments do not fit the task", row
    assert "Traceback" not in worker.output
    assert len(stage.history.runs()) == 10
    for words in (["jobs", "list"], ["dead", "list"], ["jobs", "show", spoilt["20 pickle"]]):
        assert "add" in stage.command(*words)
        json.loads(stage.command(*words, "--json"))


@pytest.mark.parametrize("column", ["tags", "meta", "error", "attempts", "reason", "idempotency_key"])
@pytest.mark.parametrize("rubbish", ["{", "[1", "nonsense", b"\x80\x04K\x01.", NOT_UTF8, 42])
def test_rubbish_in_another_column_hides_no_job(stage: Stage, column: str, rubbish: Any) -> None:
    ids = stage.enqueue("quick", 3, {"tags": ["red"]})
    stage.inside.edit(ids[1], column, rubbish)
    assert [job.id for job in stage.all_jobs()] == ids[::-1]
    assert stage.job(ids[1]).status == "pending"
    assert [job.id for job in stage.app.jobs.list(tag="red").items][-1] == ids[0]


def test_rubbish_in_other_columns_does_not_stop_a_worker(stage: Stage, tmp_path: Path) -> None:
    good = stage.enqueue("quick", 3)
    for column in ("tags", "meta", "attempts", "error"):
        for rubbish in ("{", NOT_UTF8, b"\x80"):
            stage.inside.edit(stage.enqueue_one("quick"), column, rubbish)
    good += stage.enqueue("quick", 3)
    worker = stage.worker("--until-empty")
    assert worker.wait() == 0
    assert {stage.job(id_).status for id_ in good} == {"completed"}
    assert "Traceback" not in worker.output
