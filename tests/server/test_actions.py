"""Actions on many jobs: stored, continued by a coordinator, stopped."""

from typing import Any

import pytest

from tests.server.conftest import Client, Connect, enqueue
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


async def test_waiting_jobs_are_changed_and_run_by_an_action(api: Client, app: App) -> None:
    ids = [(await app.aenqueue("mail.welcome", {"user_id": n}, delay="1h")).id for n in range(3)]
    body = {"verb": "change", "type": "mail.welcome", "change": {"priority": 7, "queue": "slow"}, "expected": 3}
    started = (await api.post("/actions", json=body)).json()
    assert (started["expected"], (await app.actions.arun(started["id"])).changed) == (3, 3)
    assert {(job.priority, job.queue) for job in (await app.jobs.alist()).items} == {(7, "slow")}
    action = await app.actions.astart("run", {"queue": "slow"})
    assert (await app.actions.arun(action.id)).changed == 3
    assert [(await app.jobs.aget(id_)).status for id_ in ids] == ["pending"] * 3
    audited = [entry.after for entry in (await app.audit.alist()).items if entry.action == "jobs.change"]
    assert audited == [{"action": started["id"], "priority": 7, "queue": "slow"}]


async def test_an_action_that_changes_names_what_and_stays_within_the_token(
    api: Client, app: App, connect: Connect
) -> None:
    for verb, change in (("change", None), ("change", {}), ("cancel", {"priority": 1})):
        answer = await api.post("/actions", json={"verb": verb, "all": True, "change": change})
        assert (answer.status_code, answer.json()["field"]) == (422, "change")
    with pytest.raises(InvalidOption, match="change"):
        await app.actions.astart("change", {"queue": "mail"}, change={"payload": {}})
    limited = await connect("operate", queues=["mail"])
    body = {"verb": "change", "queue": "mail", "change": {"queue": "other"}}
    assert (await limited.post("/actions", json=body)).status_code == 403


async def test_an_unknown_verb_or_action_is_refused(api: Client, app: App) -> None:
    with pytest.raises(InvalidOption, match="verb"):
        await app.actions.astart("explode", {})  # type: ignore[arg-type]
    assert (await api.post("/actions", json={"verb": "explode", "all": True})).status_code == 422
    for path in ("/actions/01a1e88a-0725-743b-b420-c7b4decadc37", "/actions/rubbish"):
        assert (await api.get(path)).json()["code"] == "action_not_found"
