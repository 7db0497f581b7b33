"""Actions on all jobs that match a filter: started, watched and stopped."""

import asyncio
import logging
from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from windlass.client.app import App
from windlass.client.verbs.actions import Action, ActionNotFound, ActionVerb
from windlass.core.status import Status
from windlass.core.tokens import Scope
from windlass.errors import InvalidOption, WindlassError
from windlass.server.operation import Answer, Call, Operation, reads

_log = logging.getLogger("windlass.server")


class JobFilterBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The jobs to act on: every given field must match; `all` instead of a filter."""

    status: list[Status] = []
    type: str | None = None
    queue: str | None = None
    tenant: str | None = None
    tag: str | None = None
    parent: str | None = None
    schedule: str | None = None
    error: str | None = None
    """The type of their last error, such as `ValueError`; "": those without one. Only beside another filter."""
    all: bool = False
    reason: str = "cancelled by an operator"

    @property
    def wanted(self) -> dict[str, Any]:
        """The filter."""
        names = ("status", "type", "queue", "tenant", "tag", "parent", "schedule")
        found = {name: value for name in names if (value := getattr(self, name))}
        if not found and not self.all:
            raise InvalidOption("filter", f'name at least one of {", ".join(names)}, or "all": true')
        return found


class ActionChange(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """What `change` sets in all jobs that match."""

    priority: int | UnsetType = UNSET
    queue: str | UnsetType = UNSET
    delay: float | UnsetType = UNSET
    run_at: datetime | UnsetType = UNSET


class NewAction(JobFilterBody, forbid_unknown_fields=True, kw_only=True):
    """A verb on all jobs that match."""

    verb: ActionVerb
    change: ActionChange | None = None
    """Required by the verb `change`."""
    expected: int | None = None
    """How many jobs match, for its progress."""


class ActionList(msgspec.Struct):
    """The newest actions first."""

    actions: list[Action]


class ActionRunner:
    """Runs the actions that were started through this server."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, id_: str) -> None:
        """Run an action in the background; if this process dies, a coordinator continues it."""
        task = asyncio.get_running_loop().create_task(self._run(id_))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        """Leave running actions to a coordinator."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run(self, id_: str) -> None:
        try:
            await self._app.actions.arun(id_)
        except WindlassError as error:
            _log.warning("action %s was interrupted, a coordinator continues it: %s", id_, error)


async def start_action(call: Call) -> Answer:
    """Start an action; 202 with its record, which has its progress."""
    body: NewAction = call.body
    given = {} if body.change is None else msgspec.structs.asdict(body.change)
    change = {name: value for name, value in given.items() if value is not UNSET}
    if "queue" in change:
        call.caller.need_queue(change["queue"])
    return await _start(call, body.verb, change=change or None, expected=body.expected)


async def retry_jobs(call: Call) -> Answer:
    """Retry all jobs that match, as an action."""
    return await _start(call, "retry")


async def cancel_jobs(call: Call) -> Answer:
    """Cancel all jobs that match, as an action."""
    return await _start(call, "cancel")


async def _start(call: Call, verb: ActionVerb, **more: Any) -> Answer:
    body: JobFilterBody = call.body
    action = await call.app.actions.astart(
        verb, body.wanted, reason=body.reason, rights=call.caller.rights, error=body.error, **more
    )
    call.state.actions.start(action.id)
    return Answer(action, 202, {"location": f"/api/v1/actions/{action.id}"})


async def list_actions(call: Call) -> Answer:
    """The newest actions first; a limited token sees those that stay within its limits."""
    return Answer(ActionList([each for each in await call.app.actions.alist() if _is_seen(call, each)]))


async def get_action(call: Call) -> Answer:
    """One action: its state and how far it is."""
    return Answer(await _action(call))


async def stop_action(call: Call) -> Answer:
    """Stop a running action after its current page."""
    return Answer(await call.app.actions.astop((await _action(call)).id), 202)


async def _action(call: Call) -> Action:
    found = await call.app.actions.aget(call.path["id"])
    if not _is_seen(call, found):
        raise ActionNotFound(found.id)
    return found


def _is_seen(call: Call, action: Action) -> bool:
    return call.caller.rights.includes(action.queues, action.types)


def _post(path: str, handler: Any, summary: str, body: Any) -> Operation:
    return Operation(
        method="POST",
        path=path,
        scope=Scope.OPERATE,
        handler=handler,
        summary=summary,
        body=body,
        answers={202: Action},
    )


OPERATIONS = (
    _post("/actions", start_action, "Act on all jobs that match, in the background", NewAction),
    _post("/jobs/retry", retry_jobs, "Retry all jobs that match", JobFilterBody),
    _post("/jobs/cancel", cancel_jobs, "Cancel all jobs that match", JobFilterBody),
    _post("/actions/{id}/stop", stop_action, "Stop an action", None),
    reads("/actions", list_actions, "List actions", ActionList),
    reads("/actions/{id}", get_action, "Read an action", Action),
)
