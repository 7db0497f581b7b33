"""Mail between queues: what a parent's queue has to tell children in others.

It lies in the `outbox` of the parent's queue from the script on that told the children there (`complete`, `follow`).
Whoever called that carries it (`deliver`), and clears it away after that (`delivered`). Each step may be repeated by
anybody: a child knows which of its parents have come.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.store.redis.access import Access
from windlass.store.redis.anywhere import see_anywhere
from windlass.store.redis.failpoints import naming
from windlass.store.redis.portion import first_portion
from windlass.store.redis.sight import MOST_SEEN

MORE_TO_TELL, MORE_TO_ASK = 1, 2
"""See to_do in parts/child.lua."""
_RESULT_AT = 9
MOST_TRIES = 3
"""So often a child may be moved while it is looked for."""


class Message(msgspec.Struct, frozen=True):
    """What a child shall be told: how its parent is."""

    queue: str
    """Where the child should be."""
    child: JobId
    parent: JobId
    letter: int
    result: bytes = b""
    home: str = ""
    """The queue in whose outbox it lies; empty: in none."""
    field: bytes = b""
    head: bytes = b""
    """What stands there before the result: since when, and the letter."""


class ToDo(msgspec.Struct):
    """What is to be done next, by queues."""

    stirred: set[str]
    """Others are to be told of something there (`follow`)."""
    asking: set[str]
    """Children must ask for their parents there."""

    def note(self, replies: Mapping[str, Sequence[Any]]) -> None:
        """What scripts of these queues have answered with first."""
        for queue, (first, *_) in replies.items():
            if first & MORE_TO_TELL:
                self.stirred.add(queue)
            if first & MORE_TO_ASK:
                self.asking.add(queue)


def read_mail(home: str, words: Sequence[bytes]) -> list[Message]:
    """Fields and values of an outbox, by turns, as scripts answer with them."""
    return [
        Message(
            queue=field[72:].decode() or home,
            child=field[:36].decode(),
            parent=field[36:72].decode(),
            letter=value[_RESULT_AT - 1],
            result=value[_RESULT_AT:],
            home=home,
            field=field,
            head=value[:_RESULT_AT],
        )
        for field, value in zip(words[::2], words[1::2], strict=True)
    ]


async def carry_mail(access: Access, messages: Sequence[Message]) -> ToDo:
    """Tell each child, wherever it is by now, and clear away what was delivered."""
    to_do = ToDo(set(), set())
    if not messages:
        return to_do
    with naming(access.server.watched, "deliver"):
        left = list(messages)
        for _ in range(MOST_TRIES):
            left = await _hand_over(access, left, to_do)
            if not left:
                break
            left = await _readdressed(access, left)
        undelivered = {(each.home, each.field) for each in left}
        await _clear(access, [each for each in messages if (each.home, each.field) not in undelivered])
    return to_do


async def _readdressed(access: Access, messages: Sequence[Message]) -> list[Message]:
    """To where each child is now, if it is not just on its way; without those whose children are gone."""
    sight = await see_anywhere(access, {each.child for each in messages})
    places = {id_: seen.queue for id_, seen in sight.jobs.items()}
    moving = set(sight.in_motion(each.child for each in messages))
    return [
        msgspec.structs.replace(each, queue=places.get(each.child, each.queue))
        for each in messages
        if each.child in places or each.child in moving
    ]


async def _hand_over(access: Access, messages: Sequence[Message], to_do: ToDo) -> list[Message]:
    """Those whose children are not there: they were moved."""
    missed: list[Message] = []
    mail: Mapping[str, list[Message]] = defaultdict(list)
    for message in messages:
        mail[message.queue].append(message)
    while mail:
        some = {queue: first_portion(mine, text_of, MOST_SEEN) for queue, mine in mail.items()}
        replies = await access.calls("deliver", {queue: delivery(mine, ()) for queue, mine in some.items()})
        to_do.note(replies)
        for queue, (_, *there) in replies.items():
            missed += [message for message, here in zip(some[queue], there, strict=True) if not here]
        mail = {queue: rest for queue, mine in mail.items() if (rest := mine[len(some[queue]) :])}
    return missed


def text_of(message: Message) -> int:
    """How much goes with it."""
    return len(message.result)


def delivery(messages: Sequence[Message], asked: Sequence[tuple[JobId, Micros]]) -> tuple[Any, ...]:
    """The request of deliver.lua, and its blobs; `asked` are children that have asked all of their parents."""
    told = [(message.child, message.parent, message.letter) for message in messages]
    return (told, asked), *(message.result for message in messages)


async def _clear(access: Access, messages: Sequence[Message]) -> None:
    by_home: dict[str, list[Message]] = defaultdict(list)
    for message in messages:
        by_home[message.home].append(message)
    requests = {
        queue: ([message.field.decode() for message in mine], *(message.head for message in mine))
        for queue, mine in by_home.items()
    }
    await access.calls("delivered", requests)
