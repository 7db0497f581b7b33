"""What is under our keys: whether all that is kept twice agrees, and what should have gone."""

from collections.abc import AsyncIterator

from windlass.core.moments import DAY, Micros, show_duration
from windlass.store.examination import Finding, note, ok, problem, warning
from windlass.store.redis.access import VERSION
from windlass.store.redis.examination.onlooker import Onlooker

LATE: Micros = DAY
MOST_NAMED = 5


async def check_keys(onlooker: Onlooker) -> AsyncIterator[Finding]:
    """Whether this is a store of ours, and one that we understand."""
    version, prefix = await onlooker.identify(), onlooker.server.keys.prefix
    if version is None:
        yield warning("keys", f"there is no store under the prefix {prefix} yet", "the first use makes it")
    elif version > VERSION:
        yield problem(
            "keys",
            f"the key map is version {version}, and this version of Windlass knows up to {VERSION}",
            "upgrade Windlass: pip install --upgrade windlass",
        )
    elif version < VERSION:
        yield note("keys", f"the key map is version {version} of {VERSION}: the next use brings it up to date")
    else:
        yield ok("keys", f"the key map under the prefix {prefix} is up to date (version {version})")


async def check_tallies(onlooker: Onlooker) -> AsyncIterator[Finding]:
    """Indexes against counters, each queue in one look: they must agree at every moment."""
    names = await onlooker.queue_names()
    for name in onlooker.lost:
        yield problem(
            "contents",
            f"the queue {name!r} is named, and its keys are gone or of another store",
            "was the server emptied, or restored from an old copy? Jobs of that queue are lost",
        )
    fine = not onlooker.lost
    for name, wrong in (await onlooker.calls("tallies", dict.fromkeys(names, ((),)))).items():
        for place, expected, found in wrong:
            fine = False
            yield problem(
                "contents",
                f"queue {name!r}: {place.decode()} has {found:,} entries, and there should be {expected:,}",
                "keys were changed past Windlass, or it has a fault: please report it",
            )
    if fine:
        yield ok("contents", "every index has as many entries as its counters say")


async def check_jobs(onlooker: Onlooker) -> AsyncIterator[Finding]:
    """Every job, a few at a time: whether it is where its status says."""
    wrong, seen = 0, 0
    for queue in await onlooker.queue_names():
        after = ""
        while True:
            last, jobs, lost = await onlooker.call("audit", queue, (after,))
            after, seen = last.decode(), seen + jobs
            wrong += len(lost)
            for id_, place in lost[:5]:
                yield problem(
                    "contents",
                    f"job {id_.decode()} of queue {queue!r} is not in {place.decode()}, where it should be found",
                    "keys were changed past Windlass, or it has a fault: please report it",
                )
            if not after:
                break
    if not wrong:
        yield ok("contents", f"each of {seen:,} jobs is where its status says")


async def check_schedules(onlooker: Onlooker) -> AsyncIterator[Finding]:
    """Every schedule, some at a time: whether it is found when its tick comes."""
    count, wrong, cursor = 0, set[bytes](), "0"
    while True:
        onward, looked, *lost = await onlooker.office("audit_schedules", (cursor,))
        cursor, count = onward.decode(), count + looked
        wrong |= set(lost)
        if cursor == "0":
            break
    for name in sorted(wrong)[:MOST_NAMED]:
        yield problem(
            "contents",
            f"schedule {name.decode()!r} is not found when its next tick comes",
            "keys were changed past Windlass, or it has a fault: please report it; to pause and resume it mends it",
        )
    if count and not wrong:
        yield ok("contents", f"each of {count:,} schedules is found when its tick comes")


async def check_shelves(onlooker: Onlooker) -> AsyncIterator[Finding]:
    """Finished jobs that should have been dropped more than a day ago."""
    replies = await onlooker.calls("overdue", dict.fromkeys(await onlooker.queue_names(), ((LATE,),)))
    jobs = sum(count for count, _ in replies.values())
    since = max((age for _, age in replies.values()), default=0)
    if not jobs:
        yield ok("retention", "no finished job is kept longer than it should be")
        return
    yield warning(
        "retention",
        f"{jobs:,} finished jobs should have been dropped up to {show_duration(since)} ago",
        "a coordinator drops them: is a worker running?",
    )
