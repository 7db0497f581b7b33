"""Rows edited by hand: what lists or shows them answers, whatever they contain."""

from pathlib import Path

import pytest

from tests.server.conftest import Client, enqueue
from tests.support.inside import inside

EARLIEST, LATEST = "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"


@pytest.mark.parametrize("micros", [2**62, -(2**62)])
@pytest.mark.parametrize("column", ["run_at", "created_at", "updated_at"])
async def test_a_time_that_no_calendar_has_is_shown_as_the_last_one_or_the_first(
    api: Client, address: str, tmp_path: Path, micros: int, column: str
) -> None:
    if address.startswith("redis:"):
        pytest.skip("the record of a job on Redis is binary: it has no column to edit")
    id_, other = await enqueue(api), await enqueue(api)
    inside(address, tmp_path).edit(id_, column, micros)
    listed = {job["id"]: job for job in (await api.get("/jobs")).json()["jobs"]}
    assert set(listed) == {id_, other}
    assert listed[id_][column] == (LATEST if micros > 0 else EARLIEST)
    paths = (f"/jobs/{id_}", f"/jobs/{id_}/why", "/stats", "/scale", "/dead/groups", "/queues")
    pages = ("/", "/jobs", f"/jobs/{id_}", "/queues", "/queues/default")
    for path in (*paths, *(f"http://windlass{page}" for page in pages)):
        answer = await api.get(path, headers={"accept": "text/html" if path.startswith("http:") else "*/*"})
        assert answer.status_code == 200, (path, answer.text[:500])
