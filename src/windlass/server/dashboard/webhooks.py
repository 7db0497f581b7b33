"""Webhooks: their addresses, last deliveries and failures; for administrators."""

from collections.abc import Awaitable, Callable

from windlass.core.status import Status
from windlass.core.tokens import Scope
from windlass.core.webhooks.delivery import WEBHOOK_QUEUE
from windlass.server.api.webhooks import (
    Delivery,
    DeliveryQuery,
    get_webhook,
    list_deliveries,
    list_webhooks,
    pause_webhook,
    remove_webhook,
    resume_webhook,
    send_test_event,
)
from windlass.server.dashboard.confirm import Change, confirm
from windlass.server.dashboard.page import Moved, Page, Reply, Shown, View, link, unknown_verb
from windlass.server.operation import Handler

RECENT = 20
"""Deliveries of each webhook that the list counts."""
BAD = (Status.FAILED, Status.DEAD)


async def show_webhooks(view: View) -> Reply:
    """All webhooks, each with how its last deliveries ended."""
    found = (await view.ask(list_webhooks)).body.webhooks
    rows = [(each, await _recent(view, each.name)) for each in found]
    return Shown("webhooks.html", "Webhooks", {"webhooks": rows, "recent": RECENT})


async def _recent(view: View, name: str) -> tuple[list[Delivery], list[Delivery]]:
    """The last deliveries, and those of them that failed."""
    page = (await view.ask(list_deliveries, query=DeliveryQuery(limit=RECENT), name=name)).body
    return page.deliveries, [each for each in page.deliveries if each.status in BAD]


async def show_webhook(view: View) -> Reply:
    """One webhook and its deliveries, the newest first."""
    name, cursor = view.path["name"], view.asked("cursor") or None
    found = (await view.ask(get_webhook, name=name)).body
    page = (await view.ask(list_deliveries, query=DeliveryQuery(cursor=cursor), name=name)).body
    path = f"/webhooks/{name}"
    context = {
        "webhook": found,
        "deliveries": page.deliveries,
        "dead": link("/jobs", q=f"queue:{WEBHOOK_QUEUE} tag:webhook:{name} status:dead"),
        "older": link(path, cursor=page.next_cursor) if page.next_cursor else None,
        "first": path if cursor else None,
    }
    return Shown("webhook.html", f"Webhook {name}", context)


async def act_on_webhook(view: View) -> Reply:
    """Test, pause, resume or remove a webhook."""
    verb, name = view.path["verb"], view.path["name"]
    if verb not in _VERBS:
        raise unknown_verb(verb)
    if verb == "remove":
        question = Change(
            question=f"Remove webhook {name}?",
            button="Remove 1 webhook",
            back=f"/webhooks/{name}",
            detail="Deliveries that have not been sent are cancelled. Its secret is lost.",
        )
        if (asked := confirm(view, f"/webhooks/{name}/remove", question)) is not None:
            return asked
    return await _VERBS[verb](view, name)


def _simple(handler: Handler, to: str) -> Callable[[View, str], Awaitable[Reply]]:
    async def run(view: View, name: str) -> Reply:
        await view.ask(handler, name=name)
        return Moved(to.format(name))

    return run


_VERBS: dict[str, Callable[[View, str], Awaitable[Reply]]] = {
    "test": _simple(send_test_event, "/webhooks/{}"),
    "pause": _simple(pause_webhook, "/webhooks/{}"),
    "resume": _simple(resume_webhook, "/webhooks/{}"),
    "remove": _simple(remove_webhook, "/webhooks"),
}
PAGES = (
    Page(path="/webhooks", handler=show_webhooks, scope=Scope.ADMIN),
    Page(path="/webhooks/{name}", handler=show_webhook, scope=Scope.ADMIN),
    Page(path="/webhooks/{name}/{verb}", method="POST", handler=act_on_webhook, scope=Scope.ADMIN),
)
