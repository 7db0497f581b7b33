"""windlass.remote: how large payloads may be, and how long a wait for a result lasts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.server.test_serve import Served
from windlass.errors import PayloadTooLarge
from windlass.remote import RemoteApp, RemoteRefused
from windlass.remote.app import MAX_FAILURES
from windlass.server.api.enqueue import make_job
from windlass.server.problem import Problem


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path, f"sqlite:///{tmp_path}/jobs.db")
    made.start()
    yield made
    made.end()


@pytest.fixture
def remote(served: Served) -> Iterator[RemoteApp]:
    made = RemoteApp(str(served.client.base_url), token=served.app.tokens.create("remote", ["admin"]).text)
    yield made
    made.close()


def test_the_server_decides_how_large_a_payload_may_be(remote: RemoteApp, served: Served) -> None:
    with pytest.raises(PayloadTooLarge, match=r"^payload: is .* the limit is 65,536") as refused:
        remote.enqueue("pages", {"text": "x" * 70_000})
    assert (refused.value.field, refused.value.limit) == ("payload", 65_536)
    with pytest.raises(PayloadTooLarge, match="a server takes at most 16,777,216"):
        remote.enqueue_many([make_job(remote, "mail.welcome", {"user_id": 1}, {"meta": {"x": "x" * 60_000}})] * 300)
    assert not any(served.app.stats.counts().totals.values())


def test_large_payloads_are_offloaded_by_a_server_with_blobs(tmp_path: Path) -> None:
    served = Served(tmp_path, f"sqlite:///{tmp_path}/jobs.db", WINDLASS_BLOBS=f"{tmp_path}/blobs")
    served.start()
    remote = RemoteApp(str(served.client.base_url), token=served.app.tokens.create("remote", ["admin"]).text)

    @remote.task
    def count(words: list[str]) -> int:
        return len(words)

    words = ["word"] * 100_000
    handle = count.enqueue(words)
    assert handle.job().payload == {"words": words}
    assert [each.is_file() for each in (tmp_path / "blobs").rglob(f"*{handle.id}*")], "it is in the folder"
    assert "blob" in remote.jobs.list()[0].payload
    remote.close()
    served.end()


def test_a_wait_for_a_result_gives_up_when_the_server_keeps_failing(
    remote: RemoteApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.remote.app.MAX_POLL", 0.05)
    handle = remote.enqueue("mail.welcome", {"user_id": 1})
    jobs: Any = remote.jobs
    read, calls = jobs._record, 0

    async def fail(id_: str) -> Any:
        nonlocal calls
        calls += 1
        if calls in (1, 5):
            return await read(id_)
        raise RemoteRefused(Problem(status=500, code="internal", title="the server failed"))

    monkeypatch.setattr(jobs, "_record", fail)
    with pytest.raises(RemoteRefused, match="the server failed"):
        handle.result()
    assert calls == 5 + MAX_FAILURES, "an answer in between starts the count anew"
    calls = 0
    with pytest.raises(RemoteRefused, match="the server failed"):
        handle.result(timeout=0.1)
    assert calls < 5, "the timeout of the caller ends it earlier"
