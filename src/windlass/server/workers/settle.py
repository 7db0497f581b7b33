"""POST /claims/settle: how attempts of REST workers ended."""

from random import Random

import msgspec
from msgspec import UNSET, Raw

from windlass.client.app import App
from windlass.core.codec import INLINE_LIMIT, check_json, check_size, decode
from windlass.core.control import Cancel, Dead, Retry, Snooze
from windlass.core.flow.queue import QueueRules
from windlass.core.jobs.job import Claimed, JobError
from windlass.core.jobs.outcome import Crashed, Done, Outcome, Policy, Raised, Requeued, Settlement, completed, decide
from windlass.core.jobs.retry import DEFAULT_POLICY
from windlass.core.names import with_field
from windlass.core.text import cut, printable
from windlass.core.tokens import Scope
from windlass.errors import InvalidInput, InvalidOption, InvalidPayload, LeaseLost
from windlass.observe.process import process_figures
from windlass.observe.reading import OTHER
from windlass.server.operation import Answer, Call, Operation
from windlass.server.workers.claims import checked_claim, claim_for
from windlass.server.workers.records import (
    MAX_SETTLED,
    ClaimBody,
    ItemAnswer,
    SettleAnswer,
    SettleBody,
    SettledItem,
    SettlementBody,
)
from windlass.server.workers.rest_worker import RestWorker
from windlass.server.workers.service import AttemptKey, WorkerService, service_of
from windlass.store.clock import since_boot
from windlass.store.records import Settled

MAX_SETTLE_BODY = 16 * 1024 * 1024
MAX_TYPE, MAX_MESSAGE, MAX_TRACEBACK = 200, 4_000, 16_000
_random = Random()


class RemoteError(Exception):
    """What a handler in another language raised."""


_ANSWERS: dict[Settled | None, ItemAnswer] = {
    None: ItemAnswer.INVALID,
    **{each: ItemAnswer(each.value) for each in Settled},
}
Decided = tuple[SettlementBody, Claimed, Settlement]


async def settle_jobs(call: Call) -> Answer:
    """Record how attempts ended. The answer is `already` for one settled before, `stale` for one that is over."""
    body: SettleBody = call.body
    next_claim = None if body.claim is None else _checked_claim(call, body.claim)
    if next_claim is not None and next_claim.worker != body.worker:
        raise InvalidOption("claim.worker", "must be the worker that settles")
    if not 1 <= len(body.settlements) <= MAX_SETTLED:
        raise InvalidOption("settlements", f"must be 1 to {MAX_SETTLED:,}, not {len(body.settlements):,}")
    service = service_of(call)
    try:
        worker = await service.workers.get(call.caller, body.worker)
    except LeaseLost:
        _count_stale(len(body.settlements))
        raise
    answers: dict[int, SettledItem] = {}
    given = await service.claimed(worker, [(item.id, item.attempt) for item in body.settlements])
    rules = await service.rules()
    decided: dict[int, Decided] = {}
    keys = set[AttemptKey]()
    for index, item in enumerate(body.settlements):
        job = given.get((item.id, item.attempt))
        if job is None:
            answers[index] = _answer(item, Settled.STALE)
            _count_stale(1)
            continue
        try:
            if (item.id, item.attempt) in keys:
                raise InvalidOption("attempt", "is settled before in the same call")
            decided[index] = (item, job, _settlement(call.app, job, item, rules))
            keys.add((item.id, item.attempt))
        except InvalidInput as error:
            answers[index] = _answer(item, None, str(error))
    await _settle(service, worker, decided, answers)
    claimed = None if next_claim is None else await claim_for(call, next_claim)
    return Answer(SettleAnswer([answers[index] for index in sorted(answers)], claimed))


def _count_stale(settlements: int) -> None:
    """Count what the store is not asked about; a settlement does not name the queue."""
    if (figures := process_figures()) is not None:
        figures.count("stale", OTHER, "", settlements)


def _checked_claim(call: Call, body: ClaimBody) -> ClaimBody:
    """Check the claim before anything is settled: a call that is refused has no effect."""
    try:
        return checked_claim(call, body)
    except InvalidInput as error:
        raise with_field(error, f"claim.{error.field}") from None


async def _settle(
    service: WorkerService, worker: RestWorker, decided: dict[int, Decided], answers: dict[int, SettledItem]
) -> None:
    """Settle in one call of the store, and add the answers."""
    if not decided:
        return
    store = await service.app._ready()
    found = await store.jobs.settle([settlement for _, _, settlement in decided.values()])
    ended = []
    for (index, (item, job, settlement)), said in zip(decided.items(), found, strict=True):
        answers[index] = _answer(item, said)
        since = service.forget(worker, (item.id, item.attempt))
        if said is Settled.SETTLED:
            ended.append((job, settlement, None if since is None else since_boot() - since))
    service.workers.meters.add(ended)
    # Also for `already`: the server that settled it may have been killed before it woke the group.
    await service.groups.note((job, settlement.status) for _, job, settlement in decided.values())


def _settlement(app: App, job: Claimed, item: SettlementBody, rules: dict[str, QueueRules]) -> Settlement:
    if item.outcome == "completed" and item.after is None:
        return completed(job, _result(item), 0)
    queue = rules.get(job.queue)
    retry = DEFAULT_POLICY if queue is None else queue.retry
    policy = app.registry.get(job.type).policy(retry) if job.type in app.registry else Policy(retry)
    settlement = decide(job, _outcome(item), policy, _random)
    if item.outcome == "requeued":
        return settlement
    return msgspec.structs.replace(settlement, started_after=0)


def _outcome(item: SettlementBody) -> Outcome:
    if item.after is not None and item.outcome not in ("failed", "snoozed"):
        raise InvalidOption("after", f"is for a failed or snoozed attempt, not a {item.outcome} one")
    if item.outcome != "completed" and item.result is not UNSET:
        raise InvalidOption("result", f"is for a completed attempt, not a {item.outcome} one")
    report = _report(item.error)
    match item.outcome:
        case "completed":
            return Done(_result(item))
        case "requeued":
            return Requeued()
        case "snoozed":
            if item.after is None:
                raise InvalidOption("after", "must say in how many seconds a snoozed job is tried again")
            return Raised(Snooze(item.after), report)
        case "cancelled":
            return Raised(Cancel(item.reason or ""), report)
        case "dead":
            return Raised(Dead(item.reason or report.message), report)
        case "crashed":
            return Crashed(report)
        case "failed":
            error = RemoteError(report.message) if item.after is None else Retry(after=item.after)
            return Raised(error, report)


def _result(item: SettlementBody) -> str:
    """The result, checked as that of a Python task: raw JSON is not decoded yet."""
    if not isinstance(item.result, Raw) or bytes(item.result) == b"null":
        return "null"
    try:
        text = check_size(bytes(item.result).decode(), "result", INLINE_LIMIT)
        check_json(decode(text), "result")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidPayload("result", f"is not JSON: {error}") from None
    return text


def _report(error: JobError | None) -> JobError:
    if error is None:
        return JobError("Error", "the worker gave no error")
    trace = None if error.traceback is None else cut(printable(error.traceback), MAX_TRACEBACK)
    return JobError(cut(printable(error.type), MAX_TYPE), cut(printable(error.message), MAX_MESSAGE), trace)


def _answer(item: SettlementBody, answer: Settled | None, problem: str | None = None) -> SettledItem:
    return SettledItem(id=item.id, attempt=item.attempt, answer=_ANSWERS[answer], problem=problem)


OPERATIONS = (
    Operation(
        method="POST",
        path="/claims/settle",
        scope=Scope.WORK,
        handler=settle_jobs,
        summary="Record how attempts ended",
        body=SettleBody,
        max_body=MAX_SETTLE_BODY,
        answers={200: SettleAnswer},
    ),
)
