"""Notifies dependents of the states of their parents, across queues."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from windlass.core.ids import JobId
from windlass.core.moments import SECOND, Micros
from windlass.errors import StoreUnavailable
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.errors import QueueErrors
from windlass.store.redis.connection.failpoints import as_verb
from windlass.store.redis.dependencies.mail import FollowUp, Message, deliver_mail, read_mail
from windlass.store.redis.dependencies.parent_checks import ABANDONED_AFTER, begin_registration, register_waiting
from windlass.store.redis.operator.replace import Pair, Replaced, replace_all
from windlass.store.redis.records.record import Flag

OVERDUE: Micros = 5 * SECOND
"""Mail of this age was abandoned by its sender."""
NO_OLD_MAIL: Micros = -1
MAX_ROUNDS = 100
"""Rounds of one caller, each with about 80 jobs of each queue; then the coordinator continues."""


async def register_children(access: Access, to_register: Mapping[str, Sequence[JobId]]) -> None:
    """Register these children with their parents, and apply the parents' states."""
    await _follow_up(access, await begin_registration(access, to_register))


async def notify_dependents(access: Access, queues: Iterable[str]) -> None:
    """Notify all dependents of changed parents in these queues, and deliver mail to other queues."""
    await _follow_up(access, FollowUp(set(queues), set()))


async def notify_after_enqueue(
    access: Access, to_register: Mapping[str, Sequence[JobId]], changed: Iterable[str]
) -> None:
    """After jobs are stored: check the parents of dependents, and notify dependents of changed parents.

    `tidy` does the rest within seconds, so a failure here does not fail the call that stored the jobs.
    """
    with contextlib.suppress(StoreUnavailable):
        await register_children(access, to_register)
    with contextlib.suppress(StoreUnavailable):
        await notify_dependents(access, changed)


async def continue_completion(access: Access, answers: Mapping[str, Sequence[Any]]) -> None:
    """Notify dependents and deliver mail, as the replies of `complete` request."""
    to_do = FollowUp(set(), set())
    to_do.note(answers)
    with _retry_later(access):
        delivered = await deliver_mail(access, _mail(answers))
        await _follow_up(
            access, FollowUp(to_do.changed | delivered.changed, to_do.to_register | delivered.to_register)
        )


async def finish_parent_checks(access: Access, queues: Sequence[str]) -> None:
    """Register children whose producers died before registering them."""
    await _follow_up(access, await register_waiting(access, queues, ABANDONED_AFTER))


async def finish_notifications(access: Access, queues: Sequence[str]) -> None:
    """Finish notifications whose senders have died."""
    await _follow_up(access, FollowUp(set(queues), set()), OVERDUE)


async def _follow_up(access: Access, to_do: FollowUp, least: Micros = NO_OLD_MAIL) -> None:
    """Notify, deliver and register until nothing is left, at most MAX_ROUNDS times; also mail of at least this age.

    Unreachable queues do not delay the others; their error is raised at the end.
    """
    troubles = QueueErrors()
    for _ in range(MAX_ROUNDS):
        asked = await register_waiting(access, to_do.to_register)
        changed = to_do.changed | asked.changed
        if not changed and not asked.to_register:
            break
        with as_verb(access.server.failpoint_wire, "follow"):
            replies, unreached = await access.call_reachable(
                "notify_dependents", dict.fromkeys(sorted(changed), (least,))
            )
        troubles += unreached
        to_do = await deliver_mail(access, _mail(replies))
        to_do.note(replies)
        to_do.to_register |= asked.to_register
    troubles.raise_first()


def _mail(replies: Mapping[str, Sequence[Any]]) -> list[Message]:
    return [message for queue, (_, *words) in replies.items() for message in read_mail(queue, words)]


async def replace_and_notify(access: Access, changes: Mapping[str, Sequence[Pair]]) -> dict[JobId, Replaced]:
    """`replace_all`, then notify the dependents of jobs that finished or became live again."""
    replaced = await replace_all(access, changes)
    changed = {queue for queue, pairs in changes.items() if any(_changes_parent(pair, replaced) for pair in pairs)}
    with _retry_later(access):
        await notify_dependents(access, changed)
    return replaced


@contextlib.contextmanager
def _retry_later(access: Access) -> Iterator[None]:
    """In a cluster, a queue that cannot be notified now is notified by `tidy` later."""
    try:
        yield
    except StoreUnavailable:
        if not access.clustered:
            raise


def _changes_parent(pair: Pair, replaced: Mapping[JobId, Replaced]) -> bool:
    before, after = pair
    has_dependents = bool(before.flags & Flag.HAS_DEPENDENTS)
    return has_dependents and before.finished != after.finished and replaced[before.id].status is not None
