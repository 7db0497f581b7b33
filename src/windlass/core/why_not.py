"""Why a job waits, and how it ended: reasons for every job that nobody holds."""

from windlass.core.chain import AWAITING, parent_in, told_of
from windlass.core.change import IN_LINE, PARKED
from windlass.core.circumstances import MOST_TENANTS, Circumstances, Count
from windlass.core.estimate import Estimate
from windlass.core.job import DEFAULT_KEY_LIMIT, Job
from windlass.core.moments import SECOND, Micros, to_micros
from windlass.core.reason import Reason, at, listed, many, span
from windlass.core.status import Status
from windlass.core.toll import RATED
from windlass.core.why_limits import full_up, used_up

OVERDUE: Micros = 5 * SECOND
"""So long after its time a job that nobody made pending shows that nobody looks."""

SOON: Micros = 60 * SECOND
LASTING = frozenset({"paused", "no_worker", "no_worker_serves_queue", "workers_draining", "parked", "not_admitted"})
"""What ends only when somebody does something about it."""


def waits(facts: Circumstances, start: Estimate) -> list[Reason]:
    """All that holds it, the gravest first: what does not end by itself, then what is nearest to the job.

    Of one whose time is far off, that is the first: much may change until then.
    """
    found = [
        *_not_yet(facts),
        *_blocked(facts),
        *_paused(facts),
        *_nobody(facts),
        *full_up(facts),
        *used_up(facts),
        *_behind(facts),
    ]
    head = [each for each in found[:1] if each.until is not None and to_micros(each.until) > facts.now + SOON]
    rest = [each for each in found if each not in head]
    lasting = [each for each in rest if each.code in LASTING and each.until is None]
    found = [*head, *lasting, *(each for each in rest if each not in lasting)]
    return [*(found or [_next(facts)]), *_expires(facts, start), *_closed(facts)]


def _not_yet(facts: Circumstances) -> list[Reason]:
    """Scheduled or failed: it waits for its time."""
    job, now = facts.job, facts.now
    if job.status not in (Status.SCHEDULED, Status.FAILED):
        return []
    due = to_micros(job.run_at)
    if due + OVERDUE < now:
        text = f"It was due at {at(due, now)}, but nobody has made it pending: no coordinator is at work."
        return [Reason(code="not_admitted", text=text, do="start a worker, or: windlass coordinator")]
    when = at(due, now)
    run_now = f"to run it now: windlass jobs run {job.id}"
    if job.status is Status.FAILED:
        error = f" after {job.error.type}: {_short(job.error.message)}" if job.error else ""
        used = job.failures + job.crashes
        text = f"Attempt {job.attempt} failed{error}; it is tried again at {when}. {used} of {job.max_attempts} used."
        return [Reason(code="retry_wait", text=text, do=run_now, until=job.run_at, count=used)]
    if job.reason == RATED:
        text = f"The rate {job.key_rate} of key {_quoted(job)} lets it start at {when}."
        return [Reason(code="key_rate", text=text, until=job.run_at)]
    snoozed = f" It has snoozed {job.snoozes} times." if job.snoozes else ""
    return [Reason(code="not_due", text=f"It is due at {when}.{snoozed}", do=run_now, until=job.run_at)]


def _blocked(facts: Circumstances) -> list[Reason]:
    job = facts.job
    if job.status is not Status.BLOCKED:
        return []
    if job.reason == IN_LINE:
        return [_in_line(facts)]
    if job.reason == PARKED:
        if facts.crew.know:
            return [Reason(code="parked", text="It was set aside; a worker knows its type now, and will free it.")]
        text = f"It was set aside, because no live worker knows the type {job.type}."
        return [Reason(code="parked", text=text, do=_start_one(facts))]
    if job.reason == AWAITING:
        return [_awaiting(facts)]
    if job.reason is None:
        return [Reason(code="blocked", text="It waits for other jobs to end.")]
    return [Reason(code="blocked", text=f"It is blocked: {job.reason}.")]


def _awaiting(facts: Circumstances) -> Reason:
    """It waits for its parents: for those of them that have not completed."""
    job, now = facts.job, facts.now
    left = [each for each in facts.parents if each.status is not Status.COMPLETED]
    if not facts.parents:
        text = f"It waits for {job.parents[0]}, and there is no such job yet."
        do = "whoever handed them in together may have died over it: hand all of them in again, with the same ids"
        return Reason(code="awaits_parent", text=text, do=do, jobs=job.parents[:1], count=len(job.parents))
    if not left:
        return Reason(code="awaits_parent", text="What it waited for has completed: it goes on in a moment.")
    rest = len(job.parents) - len(facts.parents)
    text = f"It waits for {listed(left, now, Count(len(left) + rest))} to complete."
    ids = tuple(each.id for each in left)
    front = facts.cause
    if front is not None and front.id not in ids:
        text += f" Its chain is at {_short(told_of(front), 240)}."
    do = f"to see what holds it up: windlass jobs why {ids[0] if front is None else front.id}"
    return Reason(code="awaits_parent", text=text, do=do, jobs=ids, count=len(left) + rest)


def _in_line(facts: Circumstances) -> Reason:
    job, place, now = facts.job, facts.place, facts.now
    limit = job.key_limit or DEFAULT_KEY_LIMIT
    before = (
        f" {many(place.line, 'job is', 'jobs are')} in line before it." if place.line.jobs else " It is the next."
    )
    ids = tuple(each.id for each in facts.holders)
    if not ids:
        text = f"It is in line for key {_quoted(job)}, of which a slot is free: it is admitted in a moment.{before}"
        return Reason(code="key_held", text=text, count=place.line.jobs, at_least=place.line.at_least)
    slots = "Key" if limit == 1 else f"All {limit:,} slots of key"
    verb = "is" if limit == 1 else "are"
    text = f"{slots} {_quoted(job)} {verb} held by {listed(facts.holders, now, place.slots)}.{before}"
    return Reason(
        code="key_held",
        text=text,
        do=f"to see what holds it up: windlass jobs why {ids[0]}",
        jobs=ids,
        count=place.line.jobs,
        at_least=place.line.at_least,
    )


def _paused(facts: Circumstances) -> list[Reason]:
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


def _nobody(facts: Circumstances) -> list[Reason]:
    """No live worker that would take it: who is missing."""
    crew, job = facts.crew, facts.job
    if crew.able or (job.status is Status.BLOCKED and job.reason == PARKED):
        return []
    if crew.draining:
        text = f"{_workers(crew.draining)} that would take it {'is' if crew.draining == 1 else 'are'} stopping."
        return [Reason(code="workers_draining", text=text, do=_start_one(facts), count=crew.draining)]
    if not crew.alive:
        text = "No worker is alive."
        return [Reason(code="no_worker", text=text, do=_start_one(facts), count=0)]
    if not crew.know:
        text = f"None of the {_workers(crew.alive)} knows the type {job.type}."
        do = f"start one with the app that has it: windlass worker module:app --queues {job.queue}"
        return [Reason(code="no_worker", text=text, do=do, count=0)]
    text = f"{_workers(crew.know)} know the type {job.type}, but none of them serves queue {job.queue}."
    text = (
        text if crew.know > 1 else text.replace("know ", "knows ", 1).replace("none of them serves", "does not serve")
    )
    return [Reason(code="no_worker_serves_queue", text=text, do=_start_one(facts), count=0)]


def _behind(facts: Circumstances) -> list[Reason]:
    job, place, fair = facts.job, facts.place, facts.queue.rules.fair
    if job.status is not Status.PENDING or place.ahead.jobs == 0:
        return []
    do = f"to let it go first: windlass jobs change {job.id} --priority N"
    if not fair:
        text = f"{many(place.ahead, 'job is', 'jobs are')} before it in queue {job.queue}."
        return [Reason(code="behind", text=text, do=do, count=place.ahead.jobs, at_least=place.ahead.at_least)]
    tenant = f"tenant {job.tenant}" if job.tenant else "those without a tenant"
    others = len({*place.tenants} - {job.tenant or ""})
    text = (
        f"Queue {job.queue} is shared by tenants: {many(place.lane, 'job', 'jobs')} of {tenant} before it, "
        f"{others}{'+' if others >= MOST_TENANTS else ''} other {'tenant waits' if others == 1 else 'tenants wait'}"
    )
    text += f", and {many(place.sooner, 'job has', 'jobs have')} a higher priority." if place.sooner.jobs else "."
    return [Reason(code="behind", text=text, do=do, count=place.lane.jobs, at_least=place.lane.at_least)]


def _next(facts: Circumstances) -> Reason:
    """Nothing holds it."""
    waited = facts.now - to_micros(facts.job.updated_at)
    if waited < OVERDUE:
        return Reason(code="next", text="Nothing holds it: it is the next that a worker takes.")
    crew = facts.crew
    if crew.busy >= crew.slots:
        text = f"It is the next, and waits for a free slot: all {crew.slots:,} of {_workers(crew.able)} are in use."
        return Reason(code="workers_busy", text=text, do="start more workers, or give them more --concurrency")
    text = f"It is the next, workers are free, and yet nobody has taken it for {span(waited)}."
    return Reason(code="next", text=text, do="windlass doctor")


def _expires(facts: Circumstances, start: Estimate) -> list[Reason]:
    job = facts.job
    if job.expires_at is None:
        return []
    ends = to_micros(job.expires_at)
    text = f"It is cancelled if it has not started by {at(ends, facts.now)}."
    if start.start is not None and start.start > ends:
        text += " It will hardly start before."
    return [Reason(code="expires", text=text, until=job.expires_at)]


def _closed(facts: Circumstances) -> list[Reason]:
    if not facts.queue.closed:
        return []
    name = facts.queue.name
    text = f"Queue {name} takes no new jobs; that does not hold this one, which is there already."
    return [Reason(code="closed", text=text, do=f"windlass queues open {name}")]


def ended(facts: Circumstances) -> Reason:
    """Of a finished job: how it ended."""
    job, now = facts.job, facts.now
    when = at(to_micros(job.finished_at or job.updated_at), now)
    attempts = f"{job.attempt} attempt{'' if job.attempt == 1 else 's'}"
    again = f"to run it again: windlass jobs retry {job.id}"
    if job.status is Status.COMPLETED:
        return Reason(code="completed", text=f"It completed at {when}, after {attempts}.", count=job.attempt)
    why = f": {_short(job.reason)}" if job.reason else ""
    if job.status is Status.CANCELLED:
        if (parent := parent_in(job.reason)) is not None:
            first = parent if facts.cause is None else facts.cause.id
            began = "" if facts.cause is None else f" It began with {_short(told_of(facts.cause), 240)}."
            again = f"to run that one again, and then this: windlass jobs retry {first}"
            return Reason(code="cancelled", text=f"It was cancelled at {when}{why}.{began}", do=again, jobs=(first,))
        return Reason(code="cancelled", text=f"It was cancelled at {when}{why}.", do=again)
    error = f" The last error: {job.error.type}: {_short(job.error.message)}." if job.error else ""
    text = f"It died at {when}, after {attempts}{why}.{error}"
    return Reason(code="dead", text=text, do=again, count=job.attempt)


def origin(facts: Circumstances) -> list[Reason]:
    """Of a job that a schedule handed in: which, for which tick, and when the next comes."""
    job, now = facts.job, facts.now
    if job.schedule is None:
        return []
    tick = "at once, because somebody wanted it" if job.tick is None else f"for {at(to_micros(job.tick), now)}"
    if facts.next_tick is None:
        following = "it has no next run"
    else:
        late = facts.next_tick + OVERDUE < now
        following = f"its next run {'was due' if late else 'is'} at {at(facts.next_tick, now)}"
    text = f"Schedule {job.schedule} handed it in {tick}; {following}."
    return [Reason(code="schedule", text=text, do=f"windlass schedules show {job.schedule}")]


def _start_one(facts: Circumstances) -> str:
    return f"windlass worker module:app --queues {facts.job.queue}"


def _workers(count: int) -> str:
    return f"{count:,} live worker{'' if count == 1 else 's'}"


def _quoted(job: Job) -> str:
    return repr(_short(job.concurrency_key or "", 60))


def _short(text: str, limit: int = 120) -> str:
    line = text.partition("\n")[0].rstrip(".")
    return line if len(line) <= limit else line[: limit - 1] + "…"
