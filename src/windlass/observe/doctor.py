"""Findings from a census: unknown types, unserved queues, clocks that disagree, broken schedules."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from windlass.core.moments import SECOND, Micros, show_duration, to_micros
from windlass.core.schedules.schedule import Schedule
from windlass.store.doctor import Census, Finding, Waiting, note, ok, problem, warning

START = "windlass worker module:app"
AHEAD: Micros = 60 * SECOND
"""A moment in the store that is further ahead of its clock than this was written under another time."""
APART: Micros = 5 * SECOND
"""Clocks that are kept by NTP differ by far less."""
CHECK = "schedules"
OVERDUE: Micros = 60 * SECOND
"""A coordinator checks every second: this long after its time, it cannot keep up."""
ALONE: Micros = 10 * SECOND
"""The same without a coordinator."""
MAX_NAMED = 5


def diagnose(census: Census, here: Micros) -> list[Finding]:
    """Every conclusion; `here` is the clock of this machine."""
    return [*_clock(census, here), *chain.from_iterable(check(census) for check in CHECKS)]


def _clock(census: Census, here: Micros) -> Iterator[Finding]:
    apart = abs(census.now - here)
    ahead = 0 if census.newest is None else census.newest - census.now
    if apart > APART:
        yield warning(
            "clock",
            f"the clock of the store and that of this machine are {show_duration(apart)} apart",
            "set both by NTP; the store's clock decides when jobs are due",
        )
    if ahead > AHEAD:
        yield problem(
            "clock",
            f"the newest entry is {show_duration(ahead)} in the future: the clock was set back, or was wrong then",
            "check the clock (NTP); delayed jobs and retries wait for the times that were written",
        )
    if apart <= APART and ahead <= AHEAD:
        yield ok("clock", "nothing in the store is from the future")


def _workers(census: Census) -> Iterator[Finding]:
    due = [each for each in census.waiting if each.due and each.queue not in census.paused]
    staying = [worker for worker in census.workers if not worker.draining]
    if staying:
        slots = sum(worker.slots for worker in staying)
        yield ok("workers", f"{_count(len(staying), 'live worker')} with {_count(slots, 'slot')}")
    elif due:
        stopping = f" ({len(census.workers)} being stopped)" if census.workers else ""
        says = f"{_jobs(census, due)} could run now, and no worker is alive{stopping}"
        yield problem("workers", says, f"start one: {START}")
    else:
        yield note("workers", "no worker is alive, and nothing is due", f"jobs run where a worker does: {START}")


def _coordinator(census: Census) -> Iterator[Finding]:
    if census.late_runners:
        late = (
            f"{_count(census.late_runners, 'runner')} ended without a word, holding {_count(census.late_jobs, 'job')}"
        )
        if census.coordinator is None:
            advice = f"a worker rescues them: {START}, or `windlass coordinator`"
            yield problem("leases", f"{late}, and there is no coordinator to rescue them", advice)
        else:
            yield warning("leases", late, "the coordinator rescues them within seconds; look again")
    else:
        yield ok("leases", "no lease is late")
    if census.workers and census.coordinator is None:
        says = "workers are alive, but none of them is coordinator"
        yield warning("coordinator", says, "one takes over within seconds; look again, and at their logs")


def _types(census: Census) -> Iterator[Finding]:
    """Compare the types of waiting jobs with live workers; without any, only parked types are surely unknown."""
    if not census.workers:
        yield from _parked(census)
        return
    known = {type_ for worker in census.workers for type_ in worker.types}
    strange = [each for each in census.waiting if each.type not in known]
    for type_ in sorted({each.type for each in strange}):
        theirs = [each for each in strange if each.type == type_]
        yield problem(
            "types",
            f"{_jobs(census, theirs)} of type {type_!r} {_wait(theirs)}, and no live worker knows that type",
            "start a worker whose app has it, or cancel them; was the task renamed?",
        )
    if not strange:
        yield ok("types", "live workers know every type that waits")


def _parked(census: Census) -> Iterator[Finding]:
    parked = [each for each in census.waiting if each.parked]
    for type_ in sorted({each.type for each in parked}):
        theirs = [each for each in parked if each.type == type_]
        one = sum(each.jobs for each in theirs) == 1
        yield problem(
            "types",
            f"{_jobs(census, theirs)} of type {type_!r} {'is' if one else 'are'} blocked: no worker knew that type",
            f"deploy the task, or cancel {'it' if one else 'them'}: windlass jobs list --status blocked",
        )


def _queues(census: Census) -> Iterator[Finding]:
    fine = True
    for queue in sorted({each.queue for each in census.waiting}):
        theirs = [each for each in census.waiting if each.queue == queue]
        for finding in _queue(census, queue, theirs):
            fine = False
            yield finding
    if fine and census.workers:
        yield ok("queues", "every queue in which jobs wait is served, and none is paused")


def _queue(census: Census, queue: str, theirs: list[Waiting]) -> Iterator[Finding]:
    waiting = f"{_jobs(census, theirs)} {_wait(theirs)} in queue {queue!r}"
    if queue in census.paused:
        yield warning("queues", f"{waiting}, which is paused", f"windlass queues resume {queue}")
    serving = [worker for worker in census.workers if queue in worker.queues]
    if census.workers and not serving:
        advice = f"start one with it: {START} --queues {queue}"
        yield problem("queues", f"{waiting}, and no live worker serves that queue", advice)
        return
    # Two workers may each know half of it: the one the queue, the other the type.
    known = {type_ for worker in census.workers for type_ in worker.types}
    here = {type_ for worker in serving for type_ in worker.types}
    for type_ in sorted({each.type for each in theirs if each.type in known - here}):
        yield problem(
            "queues",
            f"jobs of type {type_!r} wait in queue {queue!r}; the workers that serve it do not know the type, "
            "and those that know the type do not serve it",
            f"let a worker that knows {type_!r} serve {queue!r} too (--queues)",
        )


def _dead(census: Census) -> Iterator[Finding]:
    if census.dead:
        says = f"{_count(census.dead, 'dead letter')}: jobs that gave up and wait for a decision"
        yield warning("dead letters", says, "windlass dead list; then windlass dead retry, or purge")
    else:
        yield ok("dead letters", "none")


def examine_schedules(census: Census) -> Iterator[Finding]:
    """Every conclusion; what is paused is left alone."""
    troubles = {each.name: each.problem for each in census.schedules}
    yield from _broken({name: trouble for name, trouble in troubles.items() if trouble is not None})
    active = [each for each in census.schedules if not each.paused and troubles[each.name] is None]
    found = [*_overdue(census, active), *_unknown(census, active), *_unserved(census, active)]
    yield from found
    if not found and not any(troubles.values()):
        paused = sum(each.paused for each in census.schedules)
        count = f"{len(census.schedules):,}" if census.schedules else "none"
        yield ok(CHECK, f"{count}, {paused:,} of them paused" if paused else count)


def _broken(troubles: dict[str, str]) -> Iterator[Finding]:
    """The first few each, because each may have another trouble."""
    for name, trouble in list(troubles.items())[:MAX_NAMED]:
        yield problem(
            CHECK,
            f"{name} is broken, and enqueues nothing: {trouble}",
            f"windlass schedules set {name}, or remove; zones must be known on every machine (pip install tzdata)",
        )
    if len(troubles) > MAX_NAMED:
        yield problem(CHECK, f"{len(troubles) - MAX_NAMED:,} more are broken", "windlass schedules list")


def _overdue(census: Census, schedules: Sequence[Schedule]) -> Iterator[Finding]:
    late = {each.name: census.now - to_micros(each.next_at) for each in schedules if each.next_at is not None}
    patience = ALONE if census.coordinator is None else OVERDUE
    late = {name: length for name, length in late.items() if length > patience}
    if not late:
        return
    says = f"{_named(list(late))} {_be(late)} overdue, by up to {show_duration(max(late.values()))}"
    if census.coordinator is None:
        advice = "a worker sees to them: windlass worker module:app; what was missed is made up as catch_up says"
        yield problem(CHECK, f"{says}, and there is no coordinator", advice)
    else:
        yield warning(CHECK, f"{says}, though there is a coordinator", "look again, and at the logs of the workers")


def _unknown(census: Census, schedules: Sequence[Schedule]) -> Iterator[Finding]:
    """No finding without workers: then no type is known."""
    known = {type_ for worker in census.workers for type_ in worker.types}
    lost = {each.name: each.rules.job.type for each in schedules if each.rules.job.type not in known}
    if census.workers and lost:
        types = ", ".join(sorted(set(lost.values()))[:MAX_NAMED])
        yield problem(
            CHECK,
            f"no live worker knows the type of the jobs of {_named(list(lost))} ({types})",
            "start a worker whose app has it; or was the task renamed, and its schedule left behind? "
            "windlass schedules remove",
        )


def _unserved(census: Census, schedules: Sequence[Schedule]) -> Iterator[Finding]:
    served = {queue for worker in census.workers for queue in worker.queues}
    lost = {each.name: each.rules.job.queue for each in schedules if each.rules.job.queue not in served}
    if census.workers and lost:
        queues = sorted(set(lost.values()))[:MAX_NAMED]
        yield problem(
            CHECK,
            f"no live worker serves the queue of {_named(list(lost))} ({', '.join(queues)})",
            f"start one with it: windlass worker module:app --queues {','.join(queues)}",
        )


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def _be(names: dict[str, Micros]) -> str:
    return "is" if len(names) == 1 else "are"


CHECKS: tuple[Callable[[Census], Iterator[Finding]], ...] = (
    _workers,
    _coordinator,
    _types,
    _queues,
    examine_schedules,
    _dead,
)


def _jobs(census: Census, waiting: list[Waiting]) -> str:
    """The number of jobs; a lower bound where not all of them were counted."""
    total = sum(each.jobs for each in waiting)
    return _count(total, "job") if census.counted_all else f"at least {_count(total, 'job')}"


def _wait(waiting: list[Waiting]) -> str:
    return "waits" if sum(each.jobs for each in waiting) == 1 else "wait"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def totals(findings: list[Finding]) -> Counter[str]:
    """Findings by level."""
    return Counter(str(each.level) for each in findings)
