"""Actions on many jobs: their progress, and a button that stops them."""

from windlass.core.tokens import Scope
from windlass.server.api.actions import get_action, list_actions, stop_action
from windlass.server.dashboard.page import Moved, Page, Reply, Shown, View


async def show_actions(view: View) -> Reply:
    """The newest actions first."""
    return Shown("actions.html", "Actions", {"actions": (await view.ask(list_actions)).body.actions})


async def show_action(view: View) -> Reply:
    """One action and its progress."""
    return Shown("action.html", "Action", {"action": (await view.ask(get_action, id=view.path["id"])).body})


async def stop(view: View) -> Reply:
    """Stop a running action after its current page."""
    await view.ask(stop_action, id=view.path["id"])
    return Moved(f"/actions/{view.path['id']}")


PAGES = (
    Page(path="/actions", handler=show_actions),
    Page(path="/actions/{id}", handler=show_action),
    Page(path="/actions/{id}/stop", method="POST", handler=stop, scope=Scope.OPERATE),
)
