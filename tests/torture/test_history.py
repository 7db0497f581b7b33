"""The history: nothing at all when it is off; when it is on, each call in the words that the checker knows."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.checker import read
from tests.support.seed import completed, new_job, open_lease, request
from windlass.core.events import LeaseExpired, silent
from windlass.errors import LeaseLost, StoreUnavailable
from windlass.observe.history import HISTORY_FOLDER, digest, record_calls, record_events, record_run
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.records import RunnerEnd


def steps(folder: Path) -> list[tuple[str, str]]:
    return [(line["what"], line["step"]) for line in read(folder) if "step" in line]


@pytest.fixture
def on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "history"
    folder.mkdir()
    monkeypatch.setenv(HISTORY_FOLDER, str(folder))
    return folder


def test_off_everything_is_what_it_was(store: Store) -> None:
    def run(work: Any) -> None: ...

    assert record_calls(store, "client") is store
    assert record_events(silent, "runner") is silent
    assert record_run(run) is run


async def test_the_walk_of_a_job_is_written_down_call_by_call(store: Store, on: Path) -> None:
    recorded, job = record_calls(store, "client"), new_job()
    await recorded.jobs.enqueue([job])
    await open_lease(recorded)
    (claimed,) = await recorded.jobs.claim(request())
    await recorded.jobs.settle([completed(claimed)])
    await recorded.with_timeout(5).leases.end(RunnerEnd(runner="r1", started=frozenset(), crashed=False))
    await recorded.operator.retry([job.id])
    verbs = ["enqueue", "claim", "settle", "end", "retry"]
    assert steps(on) == [(verb, step) for verb in verbs for step in ("invoke", "ok")]
    lines = list(read(on))
    assert lines[0]["jobs"][0]["payload"] == lines[3]["jobs"][0]["payload"] == digest(job.payload)
    assert lines[5]["answers"] == ["settled"]
    assert len({line["file"] for line in lines}) == 1


async def test_a_refusal_is_a_failure_and_a_lost_reply_is_not(
    tmp_path: Path, on: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_FAILPOINTS", "enqueue.before_commit=raise,enqueue.after_commit=cut")
    recorded = record_calls(open_store(f"sqlite:///{tmp_path}/jobs.db"), "client")
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await recorded.jobs.enqueue([new_job()])
    with pytest.raises(LeaseLost):
        await recorded.jobs.claim(request())
    await recorded.close()
    assert [step for _, step in steps(on)] == ["invoke", "fail", "invoke", "info", "invoke", "fail"]


def test_events_are_kept_and_passed_on(on: Path) -> None:
    passed: list[Any] = []
    event = LeaseExpired(runner="r1")
    record_events(passed.append, "runner")(event)
    assert passed == [event]
    (line,) = read(on)
    assert (line["kind"], line["event"]) == ("LeaseExpired", {"runner": "r1"})
