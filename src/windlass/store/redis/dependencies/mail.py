"""Mail between queues: the states of parents, for children in other queues.

The script that notifies dependents (`complete`, `notify_dependents`) puts mail into the `outbox` of the parent's
queue. Its caller delivers it (`deliver_mail`), and then clears it (`clear_mail`). Each step is safe to repeat by
any process: the record of a child has its completed parents.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import Micros
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.failpoints import as_verb
from windlass.store.redis.connection.portion import by_queue, first_portion
from windlass.store.redis.operator.read_records import read_anywhere

MORE_TO_NOTIFY, MORE_TO_CHECK = 1, 2
"""See `to_do` in parts/dependencies/child_state.lua."""
_RESULT_AT = 9
MAX_TRIES = 3
"""Max deliveries of a message whose child moves meanwhile."""


class Message(msgspec.Struct, frozen=True):
    """The state of a parent, for a child in another queue."""

    queue: str
    """Where the child should be."""
    child: JobId
    parent: JobId
    letter: int
    result: bytes = b""
    home: str = ""
    """The queue whose outbox has it; empty: none."""
    field: bytes = b""
    head: bytes = b""
    """What precedes the result in the outbox: since when, and the letter."""


class FollowUp(msgspec.Struct):
    """Queues in which there is work left."""

    changed: set[str]
    """Queues with dependents to notify (`notify_dependents`)."""
    to_register: set[str]
    """Queues with children that must register with their parents."""

    def note(self, replies: Mapping[str, Sequence[Any]]) -> None:
        """Read `to_do`, the first value in the replies of scripts."""
        for queue, (first, *_) in replies.items():
            if first & MORE_TO_NOTIFY:
                self.changed.add(queue)
            if first & MORE_TO_CHECK:
                self.to_register.add(queue)


def read_mail(home: str, words: Sequence[bytes]) -> list[Message]:
    """Messages from the fields and values of an outbox, which a script returns alternately."""
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


async def deliver_mail(access: Access, messages: Sequence[Message]) -> FollowUp:
    """Deliver each message to the child's current queue, and clear it from the outbox."""
    follow_up = FollowUp(set(), set())
    if not messages:
        return follow_up
    with as_verb(access.server.failpoint_wire, "deliver"):
        left = list(messages)
        kept: list[Message] = []
        for _ in range(MAX_TRIES):
            left = await _deliver(access, left, follow_up, kept)
            if not left:
                break
            left = await _readdressed(access, left)
        undelivered = {(each.home, each.field) for each in (*left, *kept)}
        await _clear(access, [each for each in messages if (each.home, each.field) not in undelivered])
    return follow_up


async def _readdressed(access: Access, messages: Sequence[Message]) -> list[Message]:
    """Messages with the children's current queues; without those whose children are dropped."""
    view = await read_anywhere(access, {each.child for each in messages})
    queue_of = {id_: seen.queue for id_, seen in view.jobs.items()}
    moving = set(view.in_transit(each.child for each in messages))
    return [
        msgspec.structs.replace(each, queue=queue_of.get(each.child, each.queue))
        for each in messages
        if each.child in queue_of or each.child in moving
    ]


async def _deliver(
    access: Access, messages: Sequence[Message], follow_up: FollowUp, kept: list[Message]
) -> list[Message]:
    """Messages whose children have moved; `kept` gets those for unreachable queues."""
    missed: list[Message] = []
    mail = by_queue(messages, lambda message: message.queue)
    while mail:
        some = {queue: first_portion(mine, text_of) for queue, mine in mail.items()}
        requests = {queue: delivery(mine, ()) for queue, mine in some.items()}
        replies, _ = await access.call_reachable("deliver_mail", requests)
        for queue in requests.keys() - replies.keys():
            kept += mail.pop(queue)
        follow_up.note(replies)
        for queue, (_, *there) in replies.items():
            missed += [message for message, here in zip(some[queue], there, strict=True) if not here]
        mail = {queue: rest for queue, mine in mail.items() if (rest := mine[len(some[queue]) :])}
    return missed


def text_of(message: Message) -> int:
    """The size of its result in bytes."""
    return len(message.result)


def delivery(messages: Sequence[Message], asked: Sequence[tuple[JobId, Micros]]) -> tuple[Any, ...]:
    """The request of deliver_mail.lua, and its blobs; `asked` are children with answers of all parents."""
    states = [(message.child, message.parent, message.letter) for message in messages]
    return (states, asked), *(message.result for message in messages)


async def _clear(access: Access, messages: Sequence[Message]) -> None:
    requests = {
        queue: ([message.field.decode() for message in mine], *(message.head for message in mine))
        for queue, mine in by_queue(messages, lambda message: message.home).items()
    }
    await access.call_queues("clear_mail", requests)
