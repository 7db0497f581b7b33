"""Queues: depth, limits as declared and as changed, pause for a time, close, change."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from markupsafe import Markup

from windlass.core.moments import SECOND, duration
from windlass.core.stats.recent_stats import RecentStats, by_queue
from windlass.core.stats.timeline import Timeline
from windlass.core.tokens import Scope
from windlass.errors import InvalidInput, InvalidOption
from windlass.server.api.queues import (
    PauseRequest,
    QueuePatch,
    QueueRecord,
    change_queue,
    close_queue,
    get_queue,
    list_queues,
    open_queue,
    pause_queue,
    resume_queue,
)
from windlass.server.api.stats import StatsQuery
from windlass.server.dashboard.confirm import Change, confirm
from windlass.server.dashboard.figures.shapes import sparkline
from windlass.server.dashboard.forms.changed import State, state_of_queue, text_of, unless_changed
from windlass.server.dashboard.numbers import read_stats
from windlass.server.dashboard.page import Moved, Page, Reply, Shown, View, paged, unknown_verb
from windlass.server.dashboard.render import span

RECENT_SECONDS = 300.0
SPARK_SECONDS, SPARK_POINTS = 3600.0, 30
ENDS = (("", "until resumed"), ("15m", "15 minutes"), ("1h", "1 hour"), ("8h", "8 hours"), ("24h", "24 hours"))
MIN_BAND = 0.8
"""Percent of the width that a status has at least, so that one running job is seen beside thousands."""
DEPTH = ("running", "pending", "failed", "blocked", "scheduled")
FIELDS = {
    "max_concurrency": "Jobs at once",
    "rate_limit": "Rate",
    "fair": "Fair between tenants",
    "max_attempts": "Attempts",
    "timeout": "Time limit",
    "ageing": "Ageing",
}
CHANGEABLE = ("max_concurrency", "rate_limit", "max_attempts", "timeout")


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of a queue: the effective value, the declared one, and the operator's."""

    name: str
    title: str
    value: str
    declared: str
    changed: str
    is_changeable: bool


async def show_queues(view: View) -> Reply:
    """All queues, the deepest first."""
    limited = view.caller.rights.is_limited
    since = None if limited else SPARK_SECONDS
    query = StatsQuery(recent=RECENT_SECONDS, recent_by="queue", since=since, points=SPARK_POINTS, times="none")
    stats = await read_stats(view, query)
    queues: list[QueueRecord] = (await view.ask(list_queues)).body.queues
    assert stats.recent is not None
    largest = max((_depth(each) for each in queues), default=0)
    shown, pages = paged(view, "/queues", sorted(queues, key=lambda each: (-_depth(each), each.name)))
    context = {
        "queues": shown,
        "count": len(queues),
        "recent": by_queue(stats.recent),
        "no_recent": RecentStats(),
        "oldest": stats.oldest,
        "bands": {each.name: depth_band(each.jobs, largest) for each in shown},
        "sparks": {each.name: _spark(stats.timeline, each.name) for each in shown},
        "limits": {each.name: _limits(each) for each in shown},
        **pages,
    }
    return Shown("queues.html", "Queues", context)


def _spark(timeline: Timeline | None, queue: str) -> Markup:
    """The completed attempts of a queue over the last hour."""
    series = timeline.series.get(queue) if timeline else None
    points = series.points if series else ()
    return sparkline([None if each is None else each.completed for each in points], "completed in 2 minutes")


async def show_queue(view: View) -> Reply:
    """One queue, its settings and actions."""
    return await _page(view)


async def _page(view: View, errors: dict[str, str] | None = None) -> Reply:
    """The page, with the errors of new settings beside them."""
    answer = await view.ask(get_queue, name=view.path["name"])
    queue: QueueRecord = answer.body
    stats = await read_stats(view, StatsQuery(recent=RECENT_SECONDS, queue=queue.name))
    assert stats.recent is not None
    context = {
        "queue": queue,
        "seen": answer.headers.get("etag", ""),
        "was": text_of(state_of_queue(queue)),
        "recent": by_queue(stats.recent).get(queue.name, RecentStats()),
        "oldest": stats.oldest.get(queue.name),
        "settings": [_setting(queue, name, title) for name, title in FIELDS.items()],
        "ends": ENDS,
        "errors": errors or {},
        "typed": {name: view.given(name) for name in CHANGEABLE} if errors else {},
    }
    return Shown("queue.html", f"Queue {queue.name}", context, 422 if errors else 200)


async def act_on_queue(view: View) -> Reply:
    """Pause, resume, close, open or change a queue."""
    verb, name = view.path["verb"], view.path["name"]
    if verb not in _VERBS:
        raise unknown_verb(verb)
    if verb in ("pause", "close"):
        waiting = (await view.ask(get_queue, name=name)).body.jobs.get("pending", 0)
        said = _PAUSE if verb == "pause" else _CLOSE
        change = Change(
            question=f"{verb.capitalize()} queue {name}?",
            button=verb.capitalize(),
            back=f"/queues/{name}",
            detail=f"{said} {waiting:,} pending now.",
        )
        if (asked := confirm(view, f"/queues/{name}/{verb}", change)) is not None:
            return asked

    async def state() -> State:
        return state_of_queue((await view.ask(get_queue, name=name)).body)

    target = {"name": name, "title": f"queue {name}", "back": f"/queues/{name}"}
    return await unless_changed(view, _done(view, verb, name), state, target)


async def _done(view: View, verb: str, name: str) -> Reply:
    seen = view.given("seen")
    try:
        await _VERBS[verb](view, name, {"if-match": seen} if seen else {})
    except InvalidInput as error:
        if error.field not in CHANGEABLE:
            raise
        return await _page(view, {error.field: error.problem})
    return Moved(f"/queues/{name}")


_PAUSE = "Workers claim nothing from it until it is resumed; running jobs continue."
_CLOSE = "It refuses new jobs; those that it has go on."


async def _pause(view: View, name: str, headers: dict[str, str]) -> None:
    given = view.given("for").strip()
    seconds = duration(given, "for") / SECOND if given else None
    await view.ask(pause_queue, name=name, body=PauseRequest(seconds), headers=headers)


async def _resume(view: View, name: str, headers: dict[str, str]) -> None:
    await view.ask(resume_queue, name=name, headers=headers)


async def _close(view: View, name: str, headers: dict[str, str]) -> None:
    await view.ask(close_queue, name=name, headers=headers)


async def _open(view: View, name: str, headers: dict[str, str]) -> None:
    await view.ask(open_queue, name=name, headers=headers)


async def _set(view: View, name: str, headers: dict[str, str]) -> None:
    """Change the settings that the form names, or undo a change."""
    patch = QueuePatch(reset=[each for each in view.form.get("reset", ()) if each in CHANGEABLE])
    for each in CHANGEABLE:
        if value := view.given(each).strip():
            setattr(patch, each, _value(each, value))
    await view.ask(change_queue, name=name, body=patch, headers=headers)


def _value(name: str, text: str) -> Any:
    if name in ("rate_limit", "timeout") or text == "none":
        return text
    if not text.isdecimal():
        raise InvalidOption(name, f'must be a whole number, or "none", not {text[:40]!r}')
    return int(text)


def _setting(queue: QueueRecord, name: str, title: str) -> Setting:
    values = [_said(name, getattr(each, name)) for each in (queue.settings, queue.declared, queue.changed)]
    value, declared, changed = values
    return Setting(
        name=name,
        title=title,
        value=value or ("off" if name == "ageing" else "no limit"),
        declared=declared,
        changed=changed,
        is_changeable=name in CHANGEABLE,
    )


def _said(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return span(value) if name in ("timeout", "ageing") and not isinstance(value, str) else str(value)


def _limits(queue: QueueRecord) -> list[Setting]:
    """The limits that are set."""
    found = [_setting(queue, name, FIELDS[name]) for name in ("max_concurrency", "rate_limit", "fair")]
    return [each for each in found if each.value not in ("no limit", "no")]


def _depth(queue: QueueRecord) -> int:
    return sum(queue.jobs.get(each, 0) for each in DEPTH)


def depth_band(jobs: dict[str, int], largest: int) -> Markup:
    """The jobs of a queue as a band of its statuses; as wide as the largest queue is deep."""
    shapes, x = [], 0.0
    for status in DEPTH:
        if count := jobs.get(status, 0):
            width = max(MIN_BAND, 100 * count / max(1, largest))
            shapes.append(
                Markup('<rect class="bar {}" x="{}" width="{}" height="10"><title>{} {}</title></rect>').format(
                    status, f"{x:.2f}", f"{width:.2f}", f"{count:,}", status
                )
            )
            x += width
    return Markup("").join(shapes)


_VERBS: dict[str, Callable[[View, str, dict[str, str]], Awaitable[None]]] = {
    "pause": _pause,
    "resume": _resume,
    "close": _close,
    "open": _open,
    "set": _set,
}
PAGES = (
    Page(path="/queues", handler=show_queues),
    Page(path="/queues/{name}", handler=show_queue),
    Page(path="/queues/{name}/{verb}", method="POST", handler=act_on_queue, scope=Scope.OPERATE),
)
