"""Actions on many jobs: stored, continued by a coordinator, stopped."""

from typing import Any

import pytest

from tests.server.conftest import Client, enqueue
from windlass import App
from windlass.client.verbs import actions
from windlass.coordinator.duties import ContinueActions
from windlass.errors import InvalidOption


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two jobs are a page."""
    monkeypatch.setattr(actions, "PAGE", 2)


async def _interrupted(app: App, verb: Any = "cancel") -> str:
    """An action whose process is gone after its first page."""
    action = await app.actions.astart(verb, {"type": "mail.welcome"})
    assert await actions.run_page(await app._ready(), None, action.id)
    return action.id


async def test_a_coordinator_continues_an_action_whose_process_is_gone(
    api: Client, app: App, small_pages: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        await enqueue(api, number)
    id_ = await _interrupted(app)
    store = await app._ready()
    act = ContinueActions(store, None).run
    assert await act() == 5.0, "its process may still be there"
    assert (await app.actions.aget(id_)).changed == 2
    with monkeypatch.context() as later:
        later.setattr(actions, "ABANDONED", -1_000_000)
        assert await act() < 1
    assert await act() < 1, "it does not wait again after its own page"
    while await act() < 1:
        pass
    done = await app.actions.aget(id_)
    assert (done.state, done.seen, done.changed) == ("done", 5, 5)
    assert (await app.stats.acounts()).totals["cancelled"] == 5


async def test_a_stopped_action_changes_no_more_jobs(api: Client, app: App, small_pages: None) -> None:
    for number in range(5):
        await enqueue(api, number)
    id_ = await _interrupted(app)
    stopping = await api.post(f"/actions/{id_}/stop")
    assert (stopping.status_code, stopping.json()["state"]) == (202, "stopping")
    ended = await app.actions.arun(id_)
    assert (ended.state, ended.changed) == ("stopped", 2)
    again = await api.post(f"/actions/{id_}/stop")
    assert (again.status_code, again.json()["code"]) == (409, "not_allowed_now")


async def test_two_processes_on_one_action_change_each_job_once(api: Client, app: App, small_pages: None) -> None:
    for number in range(6):
        await enqueue(api, number)
    id_ = await _interrupted(app)
    store = await app._ready()
    while await actions.run_page(store, None, id_) | await actions.run_page(store, None, id_):
        pass
    assert (await app.actions.aget(id_)).changed == 6


async def test_finished_jobs_are_deleted_by_an_action(api: Client, app: App) -> None:
    ids = [await enqueue(api, number) for number in range(3)]
    for id_ in ids[:2]:
        await app.jobs.acancel(id_)
    action = await app.actions.astart("delete", {"status": "cancelled"})
    assert (await app.actions.arun(action.id)).changed == 2
    assert [job.id for job in (await app.jobs.alist()).items] == [ids[2]]


async def test_an_unknown_verb_or_action_is_refused(api: Client, app: App) -> None:
    with pytest.raises(InvalidOption, match="verb"):
        await app.actions.astart("explode", {})  # type: ignore[arg-type]
    assert (await api.post("/actions", json={"verb": "explode", "all": True})).status_code == 422
    for path in ("/actions/01a1e88a-0725-743b-b420-c7b4decadc37", "/actions/rubbish"):
        assert (await api.get(path)).json()["code"] == "action_not_found"
