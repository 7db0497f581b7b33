"""Very many queues and types, all at work: no page is large, and none reads more of the statistics than it shows."""

import re
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.dashboard.test_hostile import MAX_PAGE
from tests.support.addresses import on_every_store
from windlass import App
from windlass.core.stats.meter import Meter, histogram
from windlass.server import asgi
from windlass.server.dashboard import types
from windlass.store.contract import Store

QUEUES, TYPES = 200, 500
PATHS = (
    *("/", "/?range=day", "/?range=week", "/?queue=queue.7", "/jobs", "/jobs?status=scheduled", "/queues"),
    *("/queues?page=2", "/queues/queue.7", "/dead", "/schedules", "/workers", "/types", "/types?page=5"),
    *("/types/type.7", "/types/type.7?range=week", "/actions", "/audit", "/settings", "/enqueue"),
    "/suggestions?q=type:type.4",
)


@pytest.fixture
async def client(address: str) -> AsyncIterator[httpx.AsyncClient]:
    """Of a server whose store has jobs in 200 queues, and meters of 500 types."""
    app = App(address)
    for number in range(TYPES):
        app.task(type=f"type.{number}", queue=f"queue.{number % QUEUES}")(_nothing)
    await app.aenqueue_many([app.tasks[f"type.{n}"].using(delay="1h").job() for n in range(TYPES)])
    store: Store = await app._ready()
    times = histogram([1_000 * number for number in range(1, 60)])
    await store.stats.record(
        [
            Meter(queue=f"queue.{n % QUEUES}", type=f"type.{n}", completed=59, failed=1, wait=times, run=times)
            for n in range(TYPES)
        ]
    )
    headers = {"authorization": f"Bearer {(await app.tokens.acreate('test', ['admin'])).text}"}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(asgi(app)), base_url="http://windlass", headers=headers
    ) as made:
        yield made
    await app.aclose()


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_a_rate_and_a_count_say_which_time_they_are_of(client: httpx.AsyncClient) -> None:
    said = re.compile(r'Completed</span><span class="value">[\d.,]+/s</span><div class="more">([^<]*)</div>')
    found = {path: said.search((await client.get(path)).text) for path in ("/", "/queues/queue.7", "/types/type.7")}
    assert {path: each and each[1] for path, each in found.items()} == {
        "/": "in the last 20 to 30 s; 29,500 in 5 min",
        "/queues/queue.7": "in the last 20 to 30 s; 177 in 5 min",
        "/types/type.7": "in the last 20 to 30 s; 59 in 5 min",
    }
    for path in ("/queues", "/types"):
        assert "rates of the last 20 to 30 s" in (await client.get(path)).text


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_the_plots_of_one_queue_leave_the_figures_of_all(client: httpx.AsyncClient) -> None:
    page = (await client.get("/?queue=queue.7")).text
    assert "plots: queue queue.7" in page
    assert "29,500 in 5 min" in page


async def _nothing() -> None:
    """A task that does nothing."""


@on_every_store
async def test_no_page_is_larger_than_300_kilobytes_with_200_queues_and_500_types(client: httpx.AsyncClient) -> None:
    for path in PATHS:
        answer = await client.get(path)
        assert answer.status_code == 200, path
        assert len(answer.content) < MAX_PAGE, path
    assert "type.7" in (await client.get("/types/type.7")).text
    assert "queue.7" in (await client.get("/?queue=queue.7")).text
    assert "170 more" in (await client.get("/")).text, "a list that is cut says so"


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
async def test_columns_reach_less_far_where_there_are_very_many_meters(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Run times, last hour" in (await client.get("/types")).text
    monkeypatch.setattr(types, "MAX_METERS", TYPES * 4)
    assert "Run times, last 15 min" in (await client.get("/types")).text
    monkeypatch.setattr(types, "MAX_METERS", TYPES)
    assert "Run times, last 5 min" in (await client.get("/types")).text
