"""Heirs: jobs that wait for others are told how those are, in whatever queues they are."""

from collections.abc import Iterable, Mapping, Sequence

from windlass.core.ids import JobId
from windlass.core.moments import SECOND, Micros
from windlass.store.redis.access import Access
from windlass.store.redis.asking import ask, ask_for_the_dead
from windlass.store.redis.failpoints import naming
from windlass.store.redis.mail import Upshot, carry_mail, read_mail
from windlass.store.redis.record import Flag
from windlass.store.redis.replace import Pair, Replaced, replace_all

OVERDUE: Micros = 5 * SECOND
"""Mail that has lain for so long has nobody who still carries it."""
NO_OLD_MAIL: Micros = -1
MOST_ROUNDS = 100
"""Of one caller, with some 80 jobs of each queue in each; then the coordinator goes on."""


async def register(access: Access, asking: Mapping[str, Sequence[JobId]]) -> None:
    """Let these children ask for their parents, and tell whoever is to be told then."""
    await follow(access, await ask(access, asking))


async def follow(access: Access, queues: Iterable[str], least: Micros = NO_OLD_MAIL) -> None:
    """Let these queues tell all who wait there, and carry what goes to others; with mail older than `least`."""
    upshot = Upshot(set(queues), {})
    for _ in range(MOST_ROUNDS):
        if not upshot.stirred:
            return
        with naming(access.server.watched, "follow"):
            replies = await access.calls("follow", dict.fromkeys(sorted(upshot.stirred), (least,)))
        mail = [message for queue, (_, *words) in replies.items() for message in read_mail(queue, words)]
        upshot = await carry_mail(access, mail)
        upshot.stirred |= {queue for queue, (more, *_) in replies.items() if more}
        upshot.stirred |= await ask(access, upshot.asking)


async def hand_on(access: Access, answers: Mapping[str, Sequence[int | bytes]]) -> None:
    """Go on with what `complete` has said of each queue: whether there is more to tell there, and mail."""
    mail = [message for queue, (_, *words) in answers.items() for message in read_mail(queue, words)]  # type: ignore[arg-type]
    upshot = await carry_mail(access, mail)
    await follow(access, upshot.stirred | {queue for queue, (more, *_) in answers.items() if more})


async def finish_for_the_dead(access: Access, queues: Sequence[str]) -> None:
    """What those left who died before all were told."""
    await follow(access, await ask_for_the_dead(access, queues))
    await follow(access, queues, OVERDUE)


async def replace_and_tell(access: Access, changes: Mapping[str, Sequence[Pair]]) -> dict[JobId, Replaced]:
    """`replace_all`; and who waits for one that has ended by it, or lives again, is told."""
    replaced = await replace_all(access, changes)
    stirred = {queue for queue, pairs in changes.items() if any(_stirs(pair, replaced) for pair in pairs)}
    await follow(access, stirred)
    return replaced


def _stirs(pair: Pair, replaced: Mapping[JobId, Replaced]) -> bool:
    before, after = pair
    has_heirs = bool(before.flags & Flag.HEIRS)
    return has_heirs and before.finished != after.finished and replaced[before.id].status is not None
