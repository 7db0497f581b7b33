"""/flows: groups and graphs over HTTP, for tokens with and without limits."""

from typing import Any

import pytest

from tests.server.conftest import Connect
from windlass import App, Context, chain, group
from windlass.testing import arun_all


async def order(app: App) -> str:
    """A graph with nodes in two queues and of two types; its id."""
    welcome, resize = app.tasks["mail.welcome"], app.tasks["img.resize"]
    async with app.flow("order") as flow:
        mail = flow.add(welcome.job(1), name="mail")
        flow.add(resize.job("a"), name="image", after=[mail])
        flow.add(welcome.job(2), name="apology", after=[mail], when="dead")
    return flow.id


def names(found: dict[str, Any]) -> list[str]:
    return [node["name"] for node in found["nodes"]]


async def test_flows_are_listed_and_read_with_their_nodes(app: App, connect: Connect) -> None:
    id_ = await order(app)
    await group([app.tasks["mail.welcome"].job(3)], id="batch").aenqueue()
    api = await connect("read")
    listed = (await api.get("/flows")).json()
    assert {(flow["name"], flow["kind"], flow["size"]) for flow in listed["flows"]} == {
        ("order", "graph", 3),
        ("batch", "group", 1),
    }
    found = (await api.get("/flows/order")).json()
    assert found == (await api.get(f"/flows/{id_}")).json()
    assert (found["size"], found["live"], found["left_out"]) == (3, 3, 0)
    assert [(node["name"], node["after"]) for node in found["nodes"]] == [
        ("mail", []),
        ("image", [{"node": "mail", "when": "completed"}]),
        ("apology", [{"node": "mail", "when": "dead"}]),
    ]
    assert found["waits_for"] == found["nodes"][0]["id"]
    assert len((await api.get("/flows/order?limit=1")).json()["nodes"]) == 1
    assert (await api.get("/flows/none")).json()["code"] == "flow_not_found"


async def test_a_flow_is_cancelled_and_retried(app: App, connect: Connect) -> None:
    await order(app)
    api, reader = await connect("operate"), await connect("read")
    assert (await reader.post("/flows/order/cancel")).status_code == 403
    cancelled = (await api.post("/flows/order/cancel", json={"reason": "too late"})).json()
    assert (cancelled["status"], cancelled["reason"], cancelled["cancelled"]) == ("cancelled", "too late", 3)
    again = (await api.post("/flows/order/retry")).json()
    assert (again["status"], again["live"]) == ("pending", 3)
    assert [each.action for each in await app.audit.alist()][:2] == ["flow.retry", "flow.cancel"]


@pytest.mark.parametrize("limits", [{"queues": ["default"]}, {"types": ["mail.welcome"]}])
async def test_a_limited_token_sees_and_acts_on_its_own_nodes_only(
    app: App, connect: Connect, limits: dict[str, Any]
) -> None:
    await order(app)
    api = await connect("operate", **limits)
    found = (await api.get("/flows/order")).json()
    assert names(found) == ["mail", "apology"]
    assert (found["size"], found["live"], found["left_out"]) == (2, 2, 1)
    assert "image" not in str(found)
    for flow in (await api.get("/flows")).json()["flows"]:
        assert (flow["size"], flow["completed"], flow["reason"]) == (None, None, None)
    for verb in ("cancel", "retry"):
        assert (await api.post(f"/flows/order/{verb}")).json()["code"] == "outside_limits"
    assert (await app.flows.aget("order")).live == 3


async def test_a_flow_without_a_node_that_a_token_may_see_does_not_exist_for_it(app: App, connect: Connect) -> None:
    await order(app)
    api = await connect("operate", queues=["elsewhere"])
    assert (await api.get("/flows/order")).status_code == 404
    assert (await api.post("/flows/order/cancel")).status_code == 404
    assert (await api.get("/flows")).json()["flows"] == []


@pytest.mark.parametrize("kind", ["open", "added", "chain", "node"])
async def test_a_limited_token_changes_no_jobs_of_a_flow_that_are_not_among_its_nodes(
    app: App, connect: Connect, kind: str
) -> None:
    welcome, resize = app.tasks["mail.welcome"], app.tasks["img.resize"]

    @app.task(type="mail.adds")
    async def adds(ctx: Context) -> None:
        await ctx.group.add(resize.using(delay=3600).job("a"))

    if kind == "open":
        async with app.group("batch", then=welcome.job(1)) as opened:
            await opened.aadd(resize.job("a"))
    elif kind == "added":
        await group([adds.job()], id="batch", then=welcome.job(1)).aenqueue()
        await arun_all(app)
    elif kind == "chain":
        await group([chain(resize.job("a"), welcome.job(1))], id="batch").aenqueue()
    else:
        async with app.flow("batch") as flow:
            flow.add(group([welcome.job(1), resize.job("a")]))
    api = await connect("operate", queues=["default"])
    for verb in ("cancel", "retry"):
        assert (await api.post(f"/flows/batch/{verb}")).json()["code"] == "outside_limits"
    (image,) = (await app.jobs.alist(type="img.resize")).items
    assert not image.finished
    assert (await api.get("/flows/batch")).status_code == 200


async def test_members_of_an_open_group_and_members_that_members_add_are_shown(app: App, connect: Connect) -> None:
    @app.task(type="mail.adds")
    async def adds(ctx: Context) -> None:
        await ctx.group.add(app.tasks["mail.welcome"].job(1))

    async with app.group("batch") as opened:
        await opened.aadd(adds.job())
    await arun_all(app)
    api = await connect("read")
    found = (await api.get("/flows/batch")).json()
    assert [(node["type"], node["status"]) for node in found["nodes"]] == [
        ("mail.adds", "completed"),
        ("mail.welcome", "completed"),
    ]
    assert (found["size"], found["left_out"]) == (2, 0)
    assert (await api.get("/flows/batch?limit=1")).json()["left_out"] == 1
    for limit in (-1, 0, 10_001):
        assert "limit: must be 1 to 10,000" in (await api.get(f"/flows/batch?limit={limit}")).text
