"""Dead letters, grouped by type and exception: retry or delete a group."""

from windlass.core.status import Status
from windlass.core.tokens import Scope
from windlass.server.api.actions import NewAction, start_action
from windlass.server.api.dead_groups import DeadGroup, DeadGroups, group_dead
from windlass.server.dashboard.confirm import Change, confirm
from windlass.server.dashboard.page import Moved, Page, Reply, Shown, View, link, unknown_verb

VERBS = ("retry", "delete")
GROUPS_PER_PAGE = 100


async def show_dead(view: View) -> Reply:
    """The groups, the largest first."""
    found: DeadGroups = (await view.ask(group_dead)).body
    asked = view.asked("from")
    start = int(asked) if asked.isdecimal() and len(asked) < 7 else 0
    shown = found.groups[start : start + GROUPS_PER_PAGE]
    more = link("/dead", **{"from": start + GROUPS_PER_PAGE}) if len(found.groups) > start + GROUPS_PER_PAGE else None
    context = {"found": found, "shown": shown, "first": "/dead" if start else None, "more": more}
    return Shown("dead.html", "Dead letters", context)


async def act_on_group(view: View) -> Reply:
    """Retry or delete all dead jobs of a type with one kind of error."""
    verb, type_, error = view.path["verb"], view.given("type"), view.given("error")
    if verb not in VERBS:
        raise unknown_verb(verb)
    found: DeadGroups = (await view.ask(group_dead)).body
    group = next((each for each in found.groups if (each.type, each.error or "") == (type_, error)), None)
    if group is None:
        return Moved("/dead")
    if (asked := confirm(view, f"/dead/{verb}", _question(verb, group, found.complete))) is not None:
        return asked
    body = NewAction(verb=verb, status=[Status.DEAD], type=type_, error=error)  # type: ignore[arg-type]
    body.expected = group.count if found.complete else None
    action = (await view.ask(start_action, body=body)).body
    return Moved(f"/actions/{action.id}")


def _question(verb: str, group: DeadGroup, complete: bool) -> Change:
    count = f"{group.count:,} dead {'job' if group.count == 1 else 'jobs'}"
    least = "" if complete else "at least "
    return Change(
        question=f"{verb.capitalize()} {least}{count} of {group.type} with {group.error or 'no error'}?",
        button=f"{verb.capitalize()} {count}",
        count=group.count,
        back="/dead",
        danger=verb == "delete",
        detail="It runs in the background: you can watch it and stop it.",
        jobs=(group.newest,),
    )


PAGES = (
    Page(path="/dead", handler=show_dead),
    Page(path="/dead/{verb}", method="POST", handler=act_on_group, scope=Scope.OPERATE),
)
