"""Heirs: jobs that wait for others are told how those are, in whatever queues they are."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from windlass.core.ids import JobId
from windlass.core.moments import SECOND, Micros
from windlass.store.redis.access import Access
from windlass.store.redis.asking import LEFT_ALONE, ask, ask_for_all
from windlass.store.redis.failpoints import naming
from windlass.store.redis.mail import Message, ToDo, carry_mail, read_mail
from windlass.store.redis.record import Flag
from windlass.store.redis.replace import Pair, Replaced, replace_all

OVERDUE: Micros = 5 * SECOND
"""Mail that has lain for so long has nobody who still carries it."""
NO_OLD_MAIL: Micros = -1
MOST_ROUNDS = 100
"""Of one caller, with some 80 jobs of each queue in each; then the coordinator goes on."""


async def register(access: Access, asking: Mapping[str, Sequence[JobId]]) -> None:
    """Let these children ask for their parents, and tell whoever is to be told then."""
    await _go_on(access, await ask(access, asking))


async def follow(access: Access, queues: Iterable[str]) -> None:
    """Let these queues tell all who wait there, and carry what goes to others."""
    await _go_on(access, ToDo(set(queues), set()))


async def hand_on(access: Access, answers: Mapping[str, Sequence[Any]]) -> None:
    """Go on with what `complete` has said of each queue: what is to be done there, and mail."""
    to_do = await carry_mail(access, _mail(answers))
    to_do.note(answers)
    await _go_on(access, to_do)


async def finish_asking(access: Access, queues: Sequence[str]) -> None:
    """Children whose producers died before they had asked for them."""
    await _go_on(access, await ask_for_all(access, queues, LEFT_ALONE))


async def finish_telling(access: Access, queues: Sequence[str]) -> None:
    """What those left who died before all were told."""
    await _go_on(access, ToDo(set(queues), set()), OVERDUE)


async def _go_on(access: Access, to_do: ToDo, least: Micros = NO_OLD_MAIL) -> None:
    """Tell, carry and ask until nothing is left to do, or for as long as one caller may; with mail older than so."""
    for _ in range(MOST_ROUNDS):
        asked = await ask_for_all(access, to_do.asking)
        stirred = to_do.stirred | asked.stirred
        if not stirred and not asked.asking:
            return
        with naming(access.server.watched, "follow"):
            replies = await access.calls("follow", dict.fromkeys(sorted(stirred), (least,)))
        to_do = await carry_mail(access, _mail(replies))
        to_do.note(replies)
        to_do.asking |= asked.asking


def _mail(replies: Mapping[str, Sequence[Any]]) -> list[Message]:
    return [message for queue, (_, *words) in replies.items() for message in read_mail(queue, words)]


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
