"""Problems of the server as the errors that the same verb of `App` raises."""

from ast import literal_eval
from collections.abc import Callable

from windlass import errors
from windlass.client.verbs.flows import FlowNotFound
from windlass.client.verbs.webhooks import WebhookNotFound
from windlass.server.problem import Problem

NOT_WINDLASS = "not_windlass"
"""The code of an answer that is not from a Windlass server, but from a proxy or another program."""


class RemoteRefused(errors.WindlassError):
    """The server refuses the call: no valid token, a missing scope, a limit."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.title)
        self.problem = problem
        self.code = problem.code  # type: ignore[misc]


class TokenRefused(errors.StoreUnusable):
    """The server refuses the token of a worker: it is not valid, or lacks a scope or a queue."""

    code = "token_refused"


def _after_field(problem: Problem) -> str:
    return problem.title.removeprefix(f"{problem.field}: ")


def _about_job(make: Callable[[str, Problem], errors.WindlassError]) -> Callable[[Problem], errors.WindlassError]:
    return lambda problem: make(problem.job or "", problem)


def _named(problem: Problem) -> str:
    """The name in quotes in a title such as `no queue 'mial'; did you mean 'mail'?`; no name has a quote."""
    return problem.title.partition("'")[2].partition("'")[0]


def _key(problem: Problem) -> str:
    """The key, which may have any characters, in `idempotency key 'k' is held by job …`."""
    said = problem.title.removeprefix("idempotency key ").rpartition(" is held by job ")[0]
    return str(literal_eval(said)) if said else ""


def _name(problem: Problem) -> str:
    """The name of a flow, which may have any characters, in `no flow 'order-42'`."""
    return str(literal_eval(problem.title.removeprefix("no flow ")))


def _version(problem: Problem) -> str:
    """The version in a title such as `… has been changed: its version is 1-2-3 now`."""
    return problem.title.removesuffix(" now").rpartition(" ")[2]


def _invalid(kind: type[errors.InvalidInput]) -> Callable[[Problem], errors.WindlassError]:
    return lambda problem: kind(problem.field or "body", _after_field(problem), limit=problem.limit)


_INVALID: tuple[type[errors.InvalidInput], ...] = (
    errors.InvalidInput,
    errors.InvalidPayload,
    errors.PayloadTooLarge,
    errors.InvalidName,
    errors.InvalidTime,
    errors.InvalidOption,
)
_ERRORS: dict[str, Callable[[Problem], errors.WindlassError]] = {
    **{kind.code: _invalid(kind) for kind in _INVALID},
    errors.JobNotFound.code: _about_job(lambda job, _: errors.JobNotFound(job)),
    errors.KeyConflict.code: _about_job(lambda job, problem: errors.KeyConflict(_key(problem), job)),
    errors.ScheduleNotFound.code: lambda problem: _as_said(errors.ScheduleNotFound(_named(problem)), problem),
    errors.QueueNotFound.code: lambda problem: _as_said(errors.QueueNotFound(_named(problem)), problem),
    WebhookNotFound.code: lambda problem: _as_said(WebhookNotFound(_named(problem)), problem),
    FlowNotFound.code: lambda problem: FlowNotFound(_name(problem)),
    errors.QueueClosed.code: lambda problem: errors.QueueClosed(_named(problem)),
    errors.EnqueueFailed.code: lambda problem: errors.EnqueueFailed(problem.title),
    errors.UnknownTask.code: lambda problem: _as_said(errors.UnknownTask(_named(problem)), problem),
    errors.ChangedSince.code: lambda problem: _as_said(errors.ChangedSince("", _version(problem)), problem),
    errors.NotAllowedNow.code: _about_job(lambda job, problem: _as_said(errors.NotAllowedNow("", job, ""), problem)),
    errors.LeaseLost.code: lambda problem: _as_said(errors.LeaseLost(""), problem),
    errors.BlobUnavailable.code: _about_job(lambda job, problem: errors.BlobUnavailable(job, problem.title)),
}


def error_of(problem: Problem) -> errors.WindlassError:
    """The error of the tree that the problem was made from."""
    if problem.status == 503 and problem.code not in _ERRORS:
        return errors.StoreUnavailable(problem.title, maybe_done=problem.maybe_done)
    make = _ERRORS.get(problem.code, RemoteRefused)
    return make(problem)


def _as_said(error: errors.WindlassError, problem: Problem) -> errors.WindlassError:
    """The error with the title of the problem as its message."""
    error.args = (problem.title,)
    return error
