"""app.flows: look at groups, cancel them and run what failed again."""

import pytest

from tests.client.test_groups import Shop
from windlass import App, Cancel, Dead, FlowNotFound, Reason, Status, group
from windlass.core.moments import SECOND
from windlass.core.why import waiting
from windlass.testing import run_all


@pytest.fixture
def shop(app: App) -> Shop:
    return Shop(app)


def test_a_flow_counts_its_members_and_names_what_holds_it_up(shop: Shop) -> None:
    jobs = [shop.square.job(1), shop.square.using(delay=3600).job(2), shop.square.job(3)]
    handle = group(jobs, then=shop.total, always=shop.clean, id="import-7").enqueue()
    run_all(shop.app)
    flow = shop.app.flows.get("import-7")
    assert (flow.id, flow.name, flow.size, flow.completed, flow.live) == (handle.id, "import-7", 3, 2, 1)
    assert flow.waits_for == handle.member(1).id
    assert [(each.role, each.type, each.status) for each in flow.callbacks] == [
        ("then", "total", Status.BLOCKED),
        ("always", "clean", Status.BLOCKED),
    ]
    shop.app.jobs.run_now(handle.member(1))
    run_all(shop.app)
    flow = shop.app.flows.get(handle)
    assert (flow.status, flow.completed, flow.live, flow.waits_for) == (Status.COMPLETED, 3, 0, None)
    assert [each.id for each in shop.app.flows.list()] == [handle.id]


def test_a_list_does_not_count_lost_members_of_a_completed_group_as_completed(shop: Shop) -> None:
    group([shop.square.job(1), shop.square.job(2), shop.fail.job()], then=shop.stream, need=2).enqueue()
    run_all(shop.app)
    (flow,) = shop.app.flows.list()
    assert (flow.status, flow.completed, flow.size) == (Status.COMPLETED, 2, 3)


def test_why_names_the_first_member_that_has_not_ended(shop: Shop) -> None:
    handle = group([shop.square.job(1), shop.square.using(delay=3600).job(2)], then=shop.total).enqueue()
    run_all(shop.app)
    shop.app.jobs.run_now(handle.id)
    run_all(shop.app)
    why = reason(shop, handle.id, "awaits_members")
    assert "1 of 2 had completed" in why.text
    assert why.jobs == (handle.member(1).id,)
    assert handle.then is not None
    assert handle.member(1).id in reason(shop, handle.then.id, "awaits_parent").text


def test_why_names_that_member_also_if_no_worker_is_there_for_the_group(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = group([shop.square.job(1)], then=shop.total).enqueue()
    monkeypatch.setattr(waiting, "OVERDUE", -3600 * SECOND)
    assert "no coordinator" in reason(shop, handle.id, "not_admitted").text
    assert reason(shop, handle.id, "awaits_members").jobs == (handle.member(0).id,)


def reason(shop: Shop, id_: str, code: str) -> Reason:
    (found,) = [each for each in shop.app.jobs.why(id_).reasons if each.code == code]
    return found


def test_cancelling_a_flow_cancels_its_members_and_runs_always_alone(shop: Shop) -> None:
    jobs = [shop.square.job(1), *(shop.square.using(delay=3600).job(n) for n in range(5))]
    handle = group(jobs, then=shop.total, on_dead=shop.alert, always=shop.clean).enqueue()
    run_all(shop.app)
    flow = shop.app.flows.cancel(handle, "no longer needed")
    assert (flow.status, flow.reason) == (Status.CANCELLED, "no longer needed")
    assert (flow.completed, flow.cancelled, flow.live) == (1, 5, 0)
    shop.app.jobs.run_now(shop.app.jobs.get(always_of(handle)).parent or "")
    run_all(shop.app)
    assert shop.seen == ["clean"]


def always_of(handle: object) -> str:
    always = getattr(handle, "always", None)
    assert always is not None
    return str(always.id)


def test_a_handle_cancels_its_group(shop: Shop) -> None:
    handle = group([shop.square.using(delay=3600).job(1)], then=shop.total).enqueue()
    assert handle.cancel().status is Status.CANCELLED
    assert shop.app.flows.get(handle).cancelled == 1


def test_retrying_a_flow_runs_its_lost_members_again_and_then_its_callback(shop: Shop) -> None:
    jobs = [shop.square.job(1), shop.fail.job(), shop.square.job(2)]
    handle = group(jobs, then=shop.total, on_dead=shop.alert).enqueue()
    run_all(shop.app)
    assert shop.app.flows.get(handle).dead == 1
    shop.hopeless = False
    shop.app.flows.retry(handle)
    run_all(shop.app)
    assert handle.result(timeout=5) == 5
    assert shop.seen == [("alert", [(1, Status.DEAD)]), [1, 0, 4]]
    attempts = [shop.find(handle.member(index)).attempt for index in range(3)]
    assert attempts == [1, 2, 1]


def test_a_flow_that_is_lost_again_is_cancelled_again(shop: Shop) -> None:
    handle = group([shop.fail.job()], then=shop.total, on_dead=shop.alert).enqueue()
    run_all(shop.app)
    shop.app.flows.retry(handle)
    run_all(shop.app)
    assert shop.app.flows.get(handle).status is Status.CANCELLED
    assert shop.seen == [("alert", [(0, Status.DEAD)])]


def test_a_cancelled_flow_can_be_retried(shop: Shop) -> None:
    handle = group([shop.square.using(delay=3600).job(3)], then=shop.total).enqueue()
    shop.app.flows.cancel(handle)
    shop.app.flows.retry(handle)
    run_all(shop.app)
    assert handle.result(timeout=5) == 9


def test_retrying_a_completed_flow_changes_nothing(shop: Shop) -> None:
    handle = group([shop.square.job(3)], then=shop.total).enqueue()
    run_all(shop.app)
    shop.app.flows.retry(handle)
    run_all(shop.app)
    assert shop.seen == [[9]]


@pytest.mark.parametrize("how", ["dead", "cancelled"])
def test_a_retry_of_a_completed_group_runs_then_again_if_it_did_not_complete(shop: Shop, how: str) -> None:
    @shop.app.task
    def merge(parts: list[int]) -> int:
        if shop.hopeless:
            raise Dead("no room") if how == "dead" else Cancel("not needed")
        return sum(parts)

    handle = group([shop.square.job(3)], then=merge).enqueue()
    run_all(shop.app)
    shop.hopeless = False
    shop.app.flows.retry(handle)
    run_all(shop.app)
    assert handle.result(timeout=5) == 9


def test_what_is_no_group_is_not_found(shop: Shop) -> None:
    job = shop.square.enqueue(1)
    for wrong in ("no-such-name", job, shop.square.job(2).id):
        with pytest.raises(FlowNotFound, match="no flow"):
            shop.app.flows.get(wrong)
