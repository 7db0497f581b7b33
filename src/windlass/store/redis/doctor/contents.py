"""Checks of the keys: whether indexes agree with records, and what should have been dropped."""

from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from windlass.core.moments import DAY, Micros, show_duration
from windlass.store.doctor import Finding, OrphanedKey, key_findings, note, ok, problem, warning
from windlass.store.redis.doctor.read_only_access import ReadOnlyAccess
from windlass.store.redis.records.migrate import VERSION

LATE: Micros = DAY
MAX_NAMED = 5


async def check_keys(access: ReadOnlyAccess) -> AsyncIterator[Finding]:
    """Whether there is a store, of a version that this Windlass supports."""
    found, prefix = await access.identify(), access.server.keys.prefix
    if found is None:
        yield warning("keys", f"there is no store under the prefix {prefix} yet", "the first use creates it")
    elif not found.fits():
        yield problem(
            "keys",
            f"the key map is version {found.number}, and this version of Windlass knows up to {VERSION}",
            "upgrade Windlass: pip install --upgrade windlass",
        )
    elif found.number > VERSION:
        yield note("keys", f"the key map is version {found.number}, newer than this Windlass, and works with it")
    elif found.number < VERSION:
        yield note("keys", f"the key map is version {found.number} of {VERSION}: the next use brings it up to date")
    else:
        yield ok("keys", f"the key map under the prefix {prefix} is up to date (version {VERSION})")


async def check_rights(access: ReadOnlyAccess) -> AsyncIterator[Finding]:
    """Whether this user may do all that scripts do."""
    rights, prefix = await access.rights(), access.server.keys.prefix
    if (why := rights.why_refused(prefix)) is not None:
        yield problem("rights", why, "the whole line is in the reference: keys in Redis")
    elif (missing := rights.warning(prefix)) is not None:
        yield warning("rights", missing, "the whole line is in the reference: keys in Redis")
    else:
        yield ok("rights", "this user may do all that scripts do")


async def check_counts(access: ReadOnlyAccess) -> AsyncIterator[Finding]:
    """Compare indexes with counters, each queue in one consistent read: they must always agree."""
    names = await access.queue_names()
    for name in access.lost:
        yield problem(
            "contents",
            f"the queue {name!r} is named, and its keys are gone or of another store",
            "was the server emptied, or restored from an old copy? Jobs of that queue are lost",
        )
    fine = not access.lost
    for name, wrong in (await access.call_queues("check_counts", dict.fromkeys(names, ((),)))).items():
        for index_name, expected, found in wrong:
            fine = False
            yield problem(
                "contents",
                f"queue {name!r}: {index_name.decode()} has {found:,} entries, and there should be {expected:,}",
                "the coordinator repairs that within a minute or so; if not, please report it",
            )
    if fine:
        yield ok("contents", "every index has as many entries as its counters say")


async def check_jobs(access: ReadOnlyAccess) -> AsyncIterator[Finding]:
    """Check, a few at a time, that every job is in the indexes of its status."""
    wrong, seen = 0, 0
    for queue in await access.queue_names():
        async for jobs, lost in _pages(partial(access.call, "audit_jobs", queue), ""):
            seen, wrong = seen + jobs, wrong + len(lost)
            for id_, gone_from in lost[:5]:
                yield problem(
                    "contents",
                    f"job {id_.decode()} of queue {queue!r} is not in {gone_from.decode()}, where it should be found",
                    "keys were changed by hand, or Windlass has a fault: please report it",
                )
    if not wrong:
        yield ok("contents", f"each of {seen:,} jobs is where its status says")


async def check_schedules(access: ReadOnlyAccess) -> AsyncIterator[Finding]:
    """Check, some at a time, that every schedule is in the index of next ticks."""
    count, wrong = 0, set[bytes]()
    async for looked, *lost in _pages(partial(access.call_global, "audit_schedules"), "0"):
        count += looked
        wrong |= set(lost)
    for name in sorted(wrong)[:MAX_NAMED]:
        yield problem(
            "contents",
            f"schedule {name.decode()!r} is not found when its next tick comes",
            "keys were changed by hand, or Windlass has a fault: please report it; pause and resume repair it",
        )
    if count and not wrong:
        yield ok("contents", f"each of {count:,} schedules is found when its tick comes")


async def check_retention(access: ReadOnlyAccess) -> AsyncIterator[Finding]:
    """Find finished jobs that should have been dropped more than a day ago."""
    replies = await access.call_queues("overdue_drops", dict.fromkeys(await access.queue_names(), ((LATE,),)))
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


async def check_idempotency_keys(access: ReadOnlyAccess) -> AsyncIterator[Finding]:
    """Find idempotency keys that nothing will free, queue by queue, some at a time."""
    seen, left = 0, dict[tuple[str, bytes], OrphanedKey]()
    for queue in await access.queue_names():
        async for count, *found in _pages(partial(access.call, "audit_keys", queue), "0"):
            seen += count
            left |= {(queue, digest): OrphanedKey(queue, _escaped(digest), id_.decode()) for digest, id_ in found}
    keys = access.server.keys
    for finding in key_findings(
        seen,
        list(left.values()),
        lambda key: f'in redis-cli: HDEL "{keys.of_queue(key.queue, ("idempotency_keys",))[0]}" "{key.hash}"',
    ):
        yield finding


async def _pages(read: Callable[[tuple[str]], Awaitable[Any]], start: str) -> AsyncIterator[Any]:
    """The replies of a script, page by page: the next cursor comes first, and is `start` at the end."""
    cursor = start
    while True:
        onward, *page = await read((cursor,))
        yield page
        cursor = onward.decode()
        if cursor == start:
            return


def _escaped(digest: bytes) -> str:
    """Escaped for quotes of redis-cli."""
    return "".join(f"\\x{byte:02x}" for byte in digest)
