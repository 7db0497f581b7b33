"""Schedules: in words, next and last runs; run now, pause, resume."""

from collections.abc import Awaitable, Callable

from windlass.core.tokens import Scope
from windlass.server.api.schedule_records import SchedulePatch
from windlass.server.api.schedules import change_schedule, get_schedule, list_schedules, run_schedule
from windlass.server.dashboard.confirm import Change, confirm
from windlass.server.dashboard.forms.changed import State, state_of_schedule, unless_changed
from windlass.server.dashboard.page import Moved, Page, Reply, Shown, View, unknown_verb

QUESTIONS = {"run": "Enqueue a job of {} now?", "pause": "Pause {}?"}
DETAILS = {"run": "Its other runs stay as they are.", "pause": "It enqueues nothing until it is resumed."}


async def show_schedules(view: View) -> Reply:
    """All schedules: broken ones first, paused ones last, else by name."""
    found = (await view.ask(list_schedules)).body.schedules
    ordered = sorted(found, key=lambda each: (each.problem is None, each.paused, each.next_at is None, each.name))
    return Shown("schedules.html", "Schedules", {"schedules": ordered})


async def act_on_schedule(view: View) -> Reply:
    """Run, pause or resume a schedule."""
    verb, name = view.path["verb"], view.path["name"]
    if verb not in _VERBS:
        raise unknown_verb(verb)
    if verb in QUESTIONS:
        question = Change(
            question=QUESTIONS[verb].format(f"schedule {name}"),
            button="Enqueue 1 job" if verb == "run" else "Pause 1 schedule",
            back="/schedules",
            detail=DETAILS[verb],
            danger=verb == "pause",
        )
        if (asked := confirm(view, f"/schedules/{name}/{verb}", question)) is not None:
            return asked

    async def state() -> State:
        return state_of_schedule((await view.ask(get_schedule, name=name)).body)

    target = {"name": name, "title": f"schedule {name}", "back": f"/schedules/{name}"}
    return await unless_changed(view, _VERBS[verb](view, name), state, target)


async def _run(view: View, name: str) -> Reply:
    receipt = (await view.ask(run_schedule, name=name)).body
    return Moved(f"/jobs/{receipt.id}")


async def _pause(view: View, name: str) -> Reply:
    return await _patch(view, name, paused=True)


async def _resume(view: View, name: str) -> Reply:
    return await _patch(view, name, paused=False)


async def _patch(view: View, name: str, *, paused: bool) -> Reply:
    seen = view.given("seen")
    headers = {"if-match": seen} if seen else {}
    await view.ask(change_schedule, name=name, body=SchedulePatch(paused=paused), headers=headers)
    return Moved(f"/schedules/{name}" if seen else "/schedules")


_VERBS: dict[str, Callable[[View, str], Awaitable[Reply]]] = {"run": _run, "pause": _pause, "resume": _resume}
PAGES = (
    Page(path="/schedules", handler=show_schedules),
    Page(path="/schedules/{name}/{verb}", method="POST", handler=act_on_schedule, scope=Scope.OPERATE),
)
