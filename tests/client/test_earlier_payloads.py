"""A changed payload: the old one is kept, on every store."""

import asyncio

import pytest

from windlass import App, NotAllowedNow
from windlass.client.verbs.payloads import MAX_KEPT
from windlass.errors import ChangedSince, InvalidPayload, JobNotFound


@pytest.fixture
def id_(app: App) -> str:
    @app.task(type="bill.charge")
    def charge(amount: int) -> None: ...

    return charge.using(delay=3600).enqueue(1).id


def _kept(app: App, id_: str) -> list[object]:
    return [each.payload["amount"] for each in app.jobs.earlier_payloads(id_)]


def test_the_payloads_before_a_change_are_kept_the_newest_first(app: App, id_: str) -> None:
    assert _kept(app, id_) == []
    app.jobs.change(id_, payload={"amount": 2})
    app.jobs.change(id_, priority=3)
    app.jobs.change(id_, payload={"amount": 3}, priority=4)
    assert _kept(app, id_) == [2, 1]
    newest = app.jobs.earlier_payloads(id_)[0]
    assert newest.actor.source == "python"
    assert newest.until >= app.jobs.get(id_).created_at
    assert app.jobs.get(id_).payload == {"amount": 3}


def test_a_refused_change_leaves_no_trace(app: App, id_: str) -> None:
    seen = app.jobs.get(id_).version
    app.jobs.change(id_, payload={"amount": 2})
    with pytest.raises(ChangedSince):
        app.jobs.change(id_, payload={"amount": 3}, version=seen)
    with pytest.raises(InvalidPayload, match="amount"):
        app.jobs.change(id_, payload={"amount": "x"})
    app.jobs.cancel(id_)
    with pytest.raises(NotAllowedNow):
        app.jobs.change(id_, payload={"amount": 3})
    assert _kept(app, id_) == [1]


async def test_no_payload_is_lost_between_two_operators(app: App, id_: str) -> None:
    await asyncio.gather(*(app.jobs.achange(id_, payload={"amount": n}) for n in range(2, 6)))
    kept = [each.payload["amount"] for each in await app.jobs.aearlier_payloads(id_)]
    now = (await app.jobs.aget(id_)).payload["amount"]
    assert sorted([*kept, now]) == [1, 2, 3, 4, 5]


def test_a_bounded_number_is_kept(app: App, id_: str) -> None:
    for n in range(2, MAX_KEPT + 4):
        app.jobs.change(id_, payload={"amount": n})
    assert _kept(app, id_) == list(range(MAX_KEPT + 2, 2, -1))


def test_large_ones_are_kept_as_far_as_they_fit(app: App) -> None:
    id_ = app.enqueue("any", {"text": "0" * 60_000}, delay=3600).id
    for n in range(1, 7):
        app.jobs.change(id_, payload={"text": str(n) * 60_000})
    assert [each.payload["text"][0] for each in app.jobs.earlier_payloads(id_)] == ["5", "4", "3", "2"]


def test_they_go_with_their_job(app: App, id_: str) -> None:
    app.jobs.change(id_, payload={"amount": 2})
    other = app.enqueue("bill.charge", {"amount": 7}, delay=3600).id
    app.jobs.change(other, payload={"amount": 8})
    app.jobs.cancel(id_)
    app.jobs.delete(id_)
    with pytest.raises(JobNotFound):
        app.jobs.earlier_payloads(id_)
    store = app._portal().run(app._ready(), waits=True)
    documents = app._portal().run(store.documents.get("payloads", [id_, other]), waits=True)
    assert [each is None for each in documents] == [True, False]
    app.jobs.cancel(other)
    app.jobs.delete_all(status="cancelled")
    assert app._portal().run(store.documents.get("payloads", [other]), waits=True) == [None]
