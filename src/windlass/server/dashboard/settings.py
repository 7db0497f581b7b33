"""Settings: those of this server, the scopes of the caller, and for administrators the tokens."""

from windlass import __version__
from windlass.core.tokens import Scope
from windlass.server.dashboard.page import Page, Reply, Shown, View
from windlass.store.open import redact

SCOPES = {
    Scope.READ: "read everything but contents",
    Scope.PAYLOADS: "see payloads, results, log lines, notes of progress and meta",
    Scope.ENQUEUE: "enqueue jobs",
    Scope.WORK: "claim and settle jobs",
    Scope.OPERATE: "cancel, retry, change, delete, pause",
    Scope.ADMIN: "do all of this, manage webhooks, and read the audit",
}


async def show_settings(view: View) -> Reply:
    """The page of settings."""
    caller = view.caller
    hidden = caller.policy.hidden
    context = {
        "version": __version__,
        "store": redact(view.app.store) if view.allows("admin") else "",
        "look": view.look,
        "policy": caller.policy,
        "hidden": sorted([*hidden.names, *(".".join(each) for each in hidden.paths)]),
        "scopes": [(str(scope), words, caller.allows(scope)) for scope, words in SCOPES.items()],
        "queues": sorted(caller.rights.queues),
        "types": sorted(caller.rights.types),
        "knows": sorted(view.app.registry.types) if not caller.rights.is_limited else [],
        "tokens": await view.app.tokens.alist() if view.allows("admin") and not caller.rights.is_limited else [],
    }
    return Shown("settings.html", "Settings", context)


PAGES = (Page(path="/settings", handler=show_settings),)
