"""What the doctor says of schedules: those that cannot be read, that nobody sees to, whose jobs nobody would run."""

from collections.abc import Iterator, Sequence

from windlass.core.moments import SECOND, Micros, show_duration, to_micros
from windlass.core.schedule import Schedule
from windlass.store.examination import Census, Finding, ok, problem, warning

CHECK = "schedules"
OVERDUE: Micros = 60 * SECOND
"""A coordinator looks every second: so long after its time, it cannot keep up."""
ALONE: Micros = 10 * SECOND
"""Without a coordinator it needs no such patience: nobody will look."""
MOST_NAMED = 5


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
    for name, trouble in list(troubles.items())[:MOST_NAMED]:
        yield problem(
            CHECK,
            f"{name} is broken, and hands nothing in: {trouble}",
            f"windlass schedules set {name}, or remove; zones must be known on every machine (pip install tzdata)",
        )
    if len(troubles) > MOST_NAMED:
        yield problem(CHECK, f"{len(troubles) - MOST_NAMED:,} more are broken", "windlass schedules list")


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
    """Without workers nobody knows anything: then it says nothing."""
    known = {type_ for worker in census.workers for type_ in worker.types}
    lost = {each.name: each.rules.job.type for each in schedules if each.rules.job.type not in known}
    if census.workers and lost:
        types = ", ".join(sorted(set(lost.values()))[:MOST_NAMED])
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
        queues = sorted(set(lost.values()))[:MOST_NAMED]
        yield problem(
            CHECK,
            f"no live worker serves the queue of {_named(list(lost))} ({', '.join(queues)})",
            f"start one with it: windlass worker module:app --queues {','.join(queues)}",
        )


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _be(names: dict[str, Micros]) -> str:
    return "is" if len(names) == 1 else "are"
