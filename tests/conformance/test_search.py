"""search: what no index covers, found alike on every store."""

from typing import Any

import msgspec
import pytest

from tests.support.clock import ManualClock
from tests.support.seed import completed, dead, enqueue_one, failed, running, settle
from windlass.client.verbs import search as bounds
from windlass.client.verbs.search import search
from windlass.core.moments import SECOND
from windlass.core.search_text import Search, parse_search
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import JobFilter

PAYLOADS: list[dict[str, Any]] = [
    {"user_id": 42},
    {"user_id": "42"},
    {"user_id": 420},
    {"user_id": 43, "note": "user_id 42"},
    {"user": {"id": 42, "name": 'Zoë "Z" [x] ?\n'}},
    {"users": [{"id": 1}, {"id": 42}]},
    {"ids": [7, 42], "ok": True, "none": None, "x": 0.5, "large": 2**62},
    {"user_id": None, "user": "42"},
]
FOUND = {
    "payload.user_id:42": {0, 1},
    "payload.user_id:4*": {1},
    "payload.user.id:42": {4},
    "payload.users.id:42": {5},
    "payload.users.0.id:42": set(),
    "payload.users.1.id:42": {5},
    "payload.ids:42": {6},
    "payload.ids:42 payload.ok:true": {6},
    "payload.ok:true": {6},
    "payload.none:null": {6},
    "payload.x:0.5": {6},
    f"payload.large:{2**62}": {6},
    "payload.user_id:null": {7},
    "payload.user.name:Zo*": {4},
    'payload.user.name:"Zoë *"': {4},
    "payload.user.name:*[x]*": {4},
    "payload.note:*42": {3},
    "payload.nothing:42": set(),
}


async def _found(store: Store, text: str, **more: Any) -> list[str]:
    asked: Search = parse_search(text)
    assert not asked.problem
    statuses = tuple(map(Status, asked.filters.pop("status", ())))
    wanted = JobFilter(**asked.filters, status=statuses)
    found: list[str] = []
    cursor = None
    while True:
        page = await search(store.operator, wanted, asked.terms, 3, cursor, **more)
        found += [job.id for job in page.jobs]
        if (cursor := page.next_cursor) is None:
            return found


async def test_values_in_payloads_are_found(store: Store) -> None:
    ids = [await enqueue_one(store, payload=msgspec.json.encode(each).decode()) for each in PAYLOADS]
    for text, places in FOUND.items():
        assert set(await _found(store, text)) == {ids[place] for place in places}, text


async def test_types_are_found_by_a_pattern_newest_first(store: Store) -> None:
    types = ("mail.welcome", "mail.bye", "img.mail", "mail", "MAIL.x", "mail.a?b")
    ids = {name: await enqueue_one(store, type=name, queue=f"q{number % 2}") for number, name in enumerate(types)}
    assert await _found(store, "type:mail.*") == [ids["mail.a?b"], ids["mail.bye"], ids["mail.welcome"]]
    assert await _found(store, "type:*mail") == [ids["mail"], ids["img.mail"]]
    assert await _found(store, "type:mail.*b?*") == []
    assert await _found(store, "type:mail.* queue:q0") == [ids["mail.welcome"]]


async def test_errors_are_found_by_type_and_message_in_either_case(store: Store) -> None:
    jobs = [await running(store, f"r{number}") for number in range(4)]
    for ending in (
        failed(jobs[0], "Read TIMEOUT after 5 s"),
        dead(jobs[1], 'a "quoted" word'),
        completed(jobs[2]),
    ):
        await settle(store, ending)
    assert await _found(store, "error:timeout") == [jobs[0].id]
    assert await _found(store, "error:valueERROR") == [jobs[0].id]
    assert await _found(store, "error:dead") == [jobs[1].id]
    assert await _found(store, 'error:"read*after"') == [jobs[0].id]
    assert await _found(store, "error:quoted status:dead") == [jobs[1].id]
    assert await _found(store, "error:quoted status:completed") == []
    assert await _found(store, "error:traceback") == []


async def test_failures_are_listed_by_their_latest_failure_with_every_filter(
    store: Store, clock: ManualClock
) -> None:
    jobs = [
        await running(store, f"r{number}", tags=("vip",) if number % 2 else (), queue=f"q{number % 3}", tenant="acme")
        for number in range(6)
    ]
    for number in (3, 1, 5, 0, 2, 4):
        clock.advance(SECOND)
        await settle(store, (failed if number == 2 else dead)(jobs[number]))
    ids = [job.id for job in jobs]
    by_failure = {"by_failure": True}
    assert await _found(store, "status:dead,failed", **by_failure) == [ids[n] for n in (4, 2, 0, 5, 1, 3)]
    assert await _found(store, "status:dead", **by_failure) == [ids[n] for n in (4, 0, 5, 1, 3)]
    assert await _found(store, "status:dead tag:vip", **by_failure) == [ids[n] for n in (5, 1, 3)]
    assert await _found(store, "status:dead queue:q2 tenant:acme", **by_failure) == [ids[5]]
    assert await _found(store, "status:dead,failed error:no", **by_failure) == [ids[2]]


async def test_a_search_is_bounded_and_goes_on_from_its_cursor(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = await enqueue_one(store, payload='{"n":1}')
    for _ in range(5):
        await enqueue_one(store)
    monkeypatch.setattr(bounds, "MAX_CALLS", 1)
    monkeypatch.setattr(bounds, "SEARCH_SECONDS", -1)
    terms = parse_search("payload.n:1").terms
    page = await search(store.operator, JobFilter(), terms, 1, None)
    assert [job.id for job in page.jobs] == [wanted]


async def test_a_search_shows_only_what_may_be_seen(store: Store) -> None:
    ids = [await enqueue_one(store, queue=f"q{number}", type="t.x") for number in range(3)]
    terms = parse_search("type:t.*").terms
    page = await search(store.operator, JobFilter(), terms, 10, None, lambda job: job.queue == "q1")
    assert [job.id for job in page.jobs] == [ids[1]]
