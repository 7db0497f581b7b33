"""Reasons why a job waits."""

from windlass.core.flow.rate_check import THROTTLED
from windlass.core.graphs.ids import FLOW_TYPE, WATCHER_TYPES
from windlass.core.graphs.rules import ends_in_meta
from windlass.core.groups.ids import is_group_id
from windlass.core.jobs.change import NO_WORKER, WAITING_FOR_KEY
from windlass.core.jobs.dependencies import WAITING_FOR_PARENT, describe_cause
from windlass.core.jobs.job import DEFAULT_KEY_LIMIT, Job
from windlass.core.moments import SECOND, Micros, to_micros
from windlass.core.status import Status
from windlass.core.why.estimate import Estimate
from windlass.core.why.facts import MAX_TENANTS, Count, WhyFacts
from windlass.core.why.limits import at_concurrency_limit, out_of_tokens
from windlass.core.why.reason import Reason, at, listed, many, short, span

OVERDUE: Micros = 5 * SECOND
"""A job that is not admitted this long after its time shows that no coordinator runs."""

SOON: Micros = 60 * SECOND
LASTING = frozenset({"paused", "no_worker", "no_worker_serves_queue", "workers_draining", "parked", "not_admitted"})
"""Reasons that do not end by themselves."""


def waits(facts: WhyFacts, start: Estimate) -> list[Reason]:
    """All reasons, most severe first: those that do not end by themselves, then those closest to the job.

    A due time in the far future comes first of all.
    """
    found = [
        *_not_yet(facts),
        *_blocked(facts),
        *_paused(facts),
        *_no_worker(facts),
        *at_concurrency_limit(facts),
        *out_of_tokens(facts),
        *_behind(facts),
    ]
    head = [each for each in found[:1] if each.until is not None and to_micros(each.until) > facts.now + SOON]
    rest = [each for each in found if each not in head]
    lasting = [each for each in rest if each.code in LASTING and each.until is None]
    found = [*head, *lasting, *(each for each in rest if each not in lasting)]
    return [*(found or [_next(facts)]), *_expires(facts, start), *_closed(facts)]


def _not_yet(facts: WhyFacts) -> list[Reason]:
    """The reason for a scheduled or failed job that is not due yet."""
    job, now = facts.job, facts.now
    if job.status not in (Status.SCHEDULED, Status.FAILED):
        return []
    due = to_micros(job.run_at)
    if due + OVERDUE < now:
        text = f"It was due at {at(due, now)}, but is not pending yet: no coordinator is running."
        not_admitted = Reason(code="not_admitted", text=text, do="start a worker, or: windlass coordinator")
        return [not_admitted, *_members_waited_for(facts)]
    if found := _members_waited_for(facts):
        return found
    when = at(due, now)
    run_now = f"to run it now: windlass jobs run {job.id}"
    if job.status is Status.FAILED:
        error = f" after {job.error.type}: {short(job.error.message)}" if job.error else ""
        used = job.failures + job.crashes
        text = f"Attempt {job.attempt} failed{error}; it is tried again at {when}. {used} of {job.max_attempts} used."
        return [Reason(code="retry_wait", text=text, do=run_now, until=job.run_at, count=used)]
    if job.reason == THROTTLED:
        text = f"The rate {job.key_rate} of key {_quoted(job)} lets it start at {when}."
        return [Reason(code="key_rate", text=text, until=job.run_at)]
    snoozed = f" It has snoozed {job.snoozes} times." if job.snoozes else ""
    return [Reason(code="not_due", text=f"It is due at {when}.{snoozed}", do=run_now, until=job.run_at)]


def _members_waited_for(facts: WhyFacts) -> list[Reason]:
    """Of a group or graph: it waits for its members."""
    return [_waiting_for_members(facts)] if facts.job.type in WATCHER_TYPES else []


def _waiting_for_members(facts: WhyFacts) -> Reason:
    seen, front = facts.job.progress, facts.cause
    text = (
        "It is a graph, and waits for its nodes"
        if facts.job.type == FLOW_TYPE
        else "It is a group, and waits for its members"
    )
    if seen is not None and seen.total:
        text += f": {seen.done:g} of {seen.total:g} had completed at its last count"
    if front is None:
        payload = facts.job.payload if isinstance(facts.job.payload, dict) else {}
        more = " No member so far is live; its producer may add more until it seals the group."
        return Reason(code="awaits_members", text=f"{text}.{more if payload.get('open') else ''}")
    text += f". The first that has not ended is {short(describe_cause(front), 240)}."
    do = f"to see what holds it up: windlass jobs why {front.id}"
    return Reason(code="awaits_members", text=text, do=do, jobs=(front.id,))


def _blocked(facts: WhyFacts) -> list[Reason]:
    job = facts.job
    if job.status is not Status.BLOCKED:
        return []
    if job.reason == WAITING_FOR_KEY:
        return [_waiting_for_key(facts)]
    if job.reason == NO_WORKER:
        if facts.workers.know:
            return [Reason(code="parked", text="It was set aside; a worker knows its type now, and will free it.")]
        text = f"It was set aside, because no live worker knows the type {job.type}."
        return [Reason(code="parked", text=text, do=_start_another(facts))]
    if job.reason == WAITING_FOR_PARENT:
        return [_waiting_for_parents(facts)]
    if job.reason is None:
        return [Reason(code="blocked", text="It waits for other jobs to end.")]
    return [Reason(code="blocked", text=f"It is blocked: {job.reason}.")]


def _waiting_for_parents(facts: WhyFacts) -> Reason:
    """The reason for a job that waits for parents that have not completed."""
    job, now = facts.job, facts.now
    left = [each for each in facts.parents if each.status is not Status.COMPLETED]
    if not facts.parents:
        text = f"It waits for {job.parents[0]}, and there is no such job yet."
        do = "the process that enqueued them may have died halfway: enqueue all of them again, with the same ids"
        return Reason(code="awaits_parent", text=text, do=do, jobs=job.parents[:1], count=len(job.parents))
    if not left:
        return Reason(code="awaits_parent", text="What it waited for has completed: it becomes due in a moment.")
    rest = len(job.parents) - len(facts.parents)
    how = "end" if ends_in_meta(job.meta) else "complete"
    text = f"It waits for {listed(left, now, Count(len(left) + rest))} to {how}."
    ids = tuple(each.id for each in left)
    front = facts.cause
    if front is not None and front.id not in ids:
        whole = "flow" if job.flow is not None and is_group_id(job.flow) else "chain"
        text += f" Its {whole} is at {short(describe_cause(front), 240)}."
    do = f"to see what holds it up: windlass jobs why {ids[0] if front is None else front.id}"
    return Reason(code="awaits_parent", text=text, do=do, jobs=ids, count=len(left) + rest)


def _waiting_for_key(facts: WhyFacts) -> Reason:
    job, position, now = facts.job, facts.position, facts.now
    limit = job.key_limit or DEFAULT_KEY_LIMIT
    before = (
        f" {many(position.ahead_for_key, 'job is', 'jobs are')} before it."
        if position.ahead_for_key.jobs
        else " It is next."
    )
    ids = tuple(each.id for each in facts.holders)
    if not ids and not position.slots.jobs:
        text = f"It waits for key {_quoted(job)}, of which a slot is free: it is admitted in a moment.{before}"
        return Reason(
            code="key_held", text=text, count=position.ahead_for_key.jobs, at_least=position.ahead_for_key.at_least
        )
    slots = "Key" if limit == 1 else f"All {limit:,} slots of key"
    verb = "is" if limit == 1 else "are"
    text = f"{slots} {_quoted(job)} {verb} held by {listed(facts.holders, now, position.slots)}.{before}"
    return Reason(
        code="key_held",
        text=text,
        do=f"to see what holds it up: windlass jobs why {ids[0]}" if ids else None,
        jobs=ids,
        count=position.ahead_for_key.jobs,
        at_least=position.ahead_for_key.at_least,
    )


def _paused(facts: WhyFacts) -> list[Reason]:
    queue = facts.queue
    if not queue.paused:
        return []
    end = (
        "until it is resumed"
        if queue.paused_until is None
        else f"until {at(to_micros(queue.paused_until), facts.now)}"
    )
    text = f"Queue {queue.name} is paused {end}."
    return [Reason(code="paused", text=text, do=f"windlass queues resume {queue.name}", until=queue.paused_until)]


def _no_worker(facts: WhyFacts) -> list[Reason]:
    """The reason for a job that no live worker would claim."""
    workers, job = facts.workers, facts.job
    if workers.able or (job.status is Status.BLOCKED and job.reason == NO_WORKER):
        return []
    if workers.draining:
        text = f"{_workers(workers.draining)} that would take it {'is' if workers.draining == 1 else 'are'} stopping."
        return [Reason(code="workers_draining", text=text, do=_start_one(facts), count=workers.draining)]
    if not workers.alive:
        text = "No worker is alive."
        return [Reason(code="no_worker", text=text, do=_start_one(facts), count=0)]
    if not workers.know:
        none = (
            "The only live worker does not know"
            if workers.alive == 1
            else f"None of the {_workers(workers.alive)} knows"
        )
        text = f"{none} the type {job.type}."
        return [Reason(code="no_worker", text=text, do=_start_another(facts), count=0)]
    text = f"{_workers(workers.know)} know the type {job.type}, but none of them serves queue {job.queue}."
    text = (
        text
        if workers.know > 1
        else text.replace("know ", "knows ", 1).replace("none of them serves", "does not serve")
    )
    return [Reason(code="no_worker_serves_queue", text=text, do=_start_one(facts), count=0)]


def _behind(facts: WhyFacts) -> list[Reason]:
    job, position, fair = facts.job, facts.position, facts.queue.rules.fair
    if job.status is not Status.PENDING or position.ahead.jobs == 0:
        return []
    do = f"to let it go first: windlass jobs change {job.id} --priority N"
    if not fair:
        text = f"{many(position.ahead, 'job is', 'jobs are')} before it in queue {job.queue}."
        return [Reason(code="behind", text=text, do=do, count=position.ahead.jobs, at_least=position.ahead.at_least)]
    whose = f"of tenant {job.tenant}" if job.tenant else "without a tenant"
    others = len({*position.tenants} - {job.tenant or ""})
    text = (
        f"Queue {job.queue} is shared by tenants: {many(position.same_tenant, 'job', 'jobs')} {whose} before it, "
        f"{others}{'+' if others >= MAX_TENANTS else ''} other {'tenant waits' if others == 1 else 'tenants wait'}"
    )
    text += (
        f", and {many(position.higher_priority, 'job has', 'jobs have')} a higher priority."
        if position.higher_priority.jobs
        else "."
    )
    return [
        Reason(
            code="behind", text=text, do=do, count=position.same_tenant.jobs, at_least=position.same_tenant.at_least
        )
    ]


def _next(facts: WhyFacts) -> Reason:
    """The reason for a job that nothing delays."""
    workers = facts.workers
    if workers.busy >= workers.slots:
        all_slots = f"all {workers.slots:,} of {_workers(workers.able)}"
        text = f"It is next, and waits for a free slot: {all_slots} are in use."
        return Reason(code="workers_busy", text=text, do="start more workers, or give them more --concurrency")
    waited = facts.now - to_micros(facts.job.updated_at)
    if waited < OVERDUE:
        return Reason(code="next", text="Nothing delays it: a worker claims it next.")
    text = f"It is next and workers are free, yet it has not been claimed for {span(waited)}."
    return Reason(code="next", text=text, do="windlass doctor")


def _expires(facts: WhyFacts, start: Estimate) -> list[Reason]:
    job = facts.job
    if job.expires_at is None:
        return []
    ends = to_micros(job.expires_at)
    text = f"It is cancelled if it has not started by {at(ends, facts.now)}."
    if start.start is not None and start.start > ends:
        text += " It is not expected to start before."
    return [Reason(code="expires", text=text, until=job.expires_at)]


def _closed(facts: WhyFacts) -> list[Reason]:
    if not facts.queue.closed:
        return []
    name = facts.queue.name
    text = f"Queue {name} takes no new jobs; that does not affect this one, which is there already."
    return [Reason(code="closed", text=text, do=f"windlass queues open {name}")]


def origin(facts: WhyFacts) -> list[Reason]:
    """The schedule and tick of a job, and the schedule's next tick."""
    job, now = facts.job, facts.now
    if job.schedule is None:
        return []
    tick = "at once, by hand" if job.tick is None else f"for {at(to_micros(job.tick), now)}"
    if facts.next_tick is None:
        following = "it has no next run"
    else:
        late = facts.next_tick + OVERDUE < now
        following = f"its next run {'was due' if late else 'is'} at {at(facts.next_tick, now)}"
    text = f"Schedule {job.schedule} enqueued it {tick}; {following}."
    return [Reason(code="schedule", text=text, do=f"windlass schedules show {job.schedule}")]


def _start_one(facts: WhyFacts) -> str:
    return f"windlass worker module:app --queues {facts.job.queue}"


def _start_another(facts: WhyFacts) -> str:
    """Advice without a command: the app that was given may lack the type too."""
    old = "a task that was renamed keeps its old type in aliases=[...]"
    return f"start a worker whose app has it, serving queue {facts.job.queue}; {old}"


def _workers(count: int) -> str:
    return f"{count:,} live worker{'' if count == 1 else 's'}"


def _quoted(job: Job) -> str:
    return repr(short(job.concurrency_key or "", 60))
