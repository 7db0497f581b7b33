"""The ends of flows as events: by their own names, for listeners and webhooks, on every store."""

from starlette.applications import Starlette

from tests.server.conftest import Client
from tests.server.streams import Stream, listening
from windlass import App, Dead, group
from windlass.client.event_data import end_name
from windlass.testing import arun_all

FLOWS = "flow.completed,flow.dead,flow.cancelled"


async def reported(stream: Stream, count: int) -> set[tuple[str, str]]:
    return set(await stream.jobs(count))


async def test_the_end_of_a_group_or_graph_is_an_event_of_its_own(app: App, served: Starlette) -> None:
    welcome = app.tasks["mail.welcome"]

    @app.task
    def fail() -> None:
        raise Dead("hopeless")

    async with listening(app, served, event=FLOWS) as stream:
        done = await group([welcome.job(1)], on_dead=fail).aenqueue()
        lost = await group([fail.job()], on_dead=fail, always=fail).aenqueue()
        stopped = await group([welcome.using(delay=3600).job(1)]).aenqueue()
        async with app.flow("order") as flow:
            flow.add(welcome.job(1))
        await arun_all(app)
        await app.flows.acancel(stopped, "enough")
        assert await reported(stream, 4) == {
            ("flow.completed", done.id),
            ("flow.cancelled", lost.id),
            ("flow.cancelled", stopped.id),
            ("flow.completed", flow.id),
        }
        assert stream.events.empty()


async def test_the_end_of_a_flow_is_not_reported_as_that_of_a_job(app: App, served: Starlette, api: Client) -> None:
    async with listening(app, served) as stream:
        handle = await group([app.tasks["mail.welcome"].job(1)]).aenqueue()
        await arun_all(app)
        assert await stream.jobs(1) == [("job.completed", handle.member(0).id)]
        after = await app.tasks["mail.welcome"].aenqueue(2)
        await arun_all(app)
        assert await stream.jobs(1) == [("job.completed", after.id)]
    assert (await api.get("/events", params={"event": "flow.failed"})).status_code == 422


async def test_webhooks_and_the_stream_name_the_end_alike(app: App) -> None:
    handle = await group([app.tasks["mail.welcome"].job(1)]).aenqueue()
    await arun_all(app)
    ends = {end.id: end_name(end) for end in (await (await app._ready()).operator.ended(0, None, 10)).ends}
    assert ends == {handle.id: "flow.completed", handle.member(0).id: "job.completed"}
    await app.webhooks.aadd("ops", "https://example.com/hook", events=["flow.completed"])
    (webhook,) = await app.webhooks.alist()
    assert webhook.events == ("flow.completed",)
