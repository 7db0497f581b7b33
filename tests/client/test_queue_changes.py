"""app.queues: what an operator changes holds beside what the code declares, one setting at a time."""

import asyncio
import inspect
from typing import Any

import pytest

from tests.client.labour import Labour
from tests.support.addresses import on_sqlite
from tests.support.seed import nothing
from windlass import App, InvalidInput, InvalidOption, Status
from windlass.client.verbs.queues import Queues
from windlass.core.flow.queue import Queue, QueueSettings, settings


@pytest.fixture
def declared(app: App) -> App:
    """An app whose queue has limits already."""
    app.queue("images", max_concurrency=8, rate_limit="10/s burst 50", fair=True, weights={"acme": 2}, ageing="10m")
    return app


def test_a_declaration_is_shown_and_holds(declared: App) -> None:
    queue = declared.queues.get("images")
    assert queue.changed == QueueSettings()
    rules = queue.rules
    assert (rules.max_concurrency, str(rules.rate_limit), rules.fair) == (8, "10/s burst 50", True)
    assert (rules.weights, rules.ageing) == ({"acme": 2.0}, 600_000_000)


def test_set_changes_what_is_named_and_keeps_the_rest_of_the_operators_change(declared: App) -> None:
    declared.queues.set("images", max_concurrency=4, weights={"acme": 3})
    queue = declared.queues.set("images", rate_limit="none", weights={"other": 0.5})
    assert queue == declared.queues.get("images")
    assert queue.changed == settings(max_concurrency=4, rate_limit="none", weights={"acme": 3, "other": 0.5})
    assert queue.declared.max_concurrency == 8
    assert (queue.rules.max_concurrency, queue.rules.rate_limit, queue.rules.fair) == (4, None, True)


def test_reset_undoes_all_or_what_is_named(declared: App) -> None:
    declared.queues.set("images", max_concurrency=4, fair=False, ageing="none")
    queue = declared.queues.reset("images", "fair", "ageing")
    assert (queue.rules.max_concurrency, queue.rules.fair, queue.rules.ageing) == (4, True, 600_000_000)
    assert declared.queues.reset("images").changed == QueueSettings()
    assert declared.queues.get("images").rules.max_concurrency == 8


def test_to_set_nothing_is_a_mistake(declared: App) -> None:
    with pytest.raises(InvalidOption, match=r"^set: nothing to change; there are max_attempts, retry, timeout"):
        declared.queues.set("images")
    with pytest.raises(InvalidOption, match=r'^set: nothing to change; .*; "none" lifts a limit'):
        declared.queues.set("images", max_concurrency=None)


def test_help_shows_the_arguments_of_a_blocking_verb(app: App) -> None:
    assert list(inspect.signature(app.queues.pause).parameters) == ["name", "length", "version"]
    assert (app.queues.pause.__module__, app.queues.pause.__qualname__) == (Queues.__module__, "Queues.pause")


async def test_operators_who_change_a_queue_at_once_undo_nothing_of_each_others(address: str) -> None:
    apps = [App(address) for _ in range(4)]
    changes: list[dict[str, Any]] = [
        {"max_concurrency": 3},
        {"rate_limit": "5/s"},
        {"weights": {"a": 2}},
        {"weights": {"b": 3}},
    ]
    await apps[0].queues.aadd("q")
    await asyncio.gather(*(app.queues.aset("q", **change) for app, change in zip(apps, changes, strict=True)))
    changed = (await apps[0].queues.aget("q")).changed
    assert changed == settings(max_concurrency=3, rate_limit="5/s", weights={"a": 2, "b": 3})
    for app in apps:
        await app.aclose()


def test_a_queue_is_closed_and_opened_beside_being_paused(app: App) -> None:
    app.queues.add("mail")
    assert app.queues.close("mail").closed
    assert app.queues.pause("mail").closed
    assert app.queues.resume("mail") == Queue(name="mail", closed=True)
    assert app.queues.set("mail", fair=True).closed
    assert app.queues.open("mail") == Queue(name="mail", changed=settings(fair=True))


def test_purge_cancels_all_that_waits_and_leaves_what_runs_and_other_queues(app: App, labour: Labour) -> None:
    task = app.task(type="t")(nothing)
    held = app._portal().run(_claim(app, labour, task))
    waiting = [task.enqueue(), task.using(delay=3600).enqueue()]
    other = task.using(queue="other").enqueue()
    assert app.queues.purge("default") == 2
    assert [(app.jobs.get(each.id).status, app.jobs.get(each.id).reason) for each in waiting] == [
        (Status.CANCELLED, "purged")
    ] * 2
    assert (app.jobs.get(held).status, app.jobs.get(held).cancel_requested) == (Status.RUNNING, False)
    assert app.jobs.get(other.id).status is Status.PENDING
    assert app.queues.purge("default") == 0


async def _claim(app: App, labour: Labour, task: Any) -> str:
    await task.aenqueue()
    return (await labour.aclaim(await app._ready())).id


@on_sqlite
def test_purge_goes_through_all_pages(app: App) -> None:
    task = app.task(type="t")(nothing)
    app.enqueue_many([task.using(delay=60).job() for _ in range(1201)])
    assert app.queues.purge("default") == 1201
    assert app.stats.counts().totals["cancelled"] == 1201


@pytest.mark.parametrize("verb", ["get", "set", "reset", "pause", "resume", "close", "open", "purge"])
@pytest.mark.parametrize("name", ["", "a b", "x" * 129, None])
def test_a_name_that_is_none_is_refused(app: App, verb: str, name: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^queue: "):
        getattr(app.queues, verb)(name, **({"fair": True} if verb == "set" else {}))
    assert app.queues.list() == []
