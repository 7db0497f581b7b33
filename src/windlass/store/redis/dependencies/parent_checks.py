"""Children register with their parents: each reads the parents' states, and is notified of changes from then on.

A child is stored first, and is in `parent_checks` of its own queue until all of its parents have answered
(`register_children`). So a child whose producer died in between is found again, and no change of a parent is
missed. A child that waits long registers again from time to time: a failover may have lost its registration or its
mail.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from windlass.core.ids import JobId
from windlass.core.jobs.dependencies import pending_parents
from windlass.core.moments import SECOND, Micros
from windlass.store.redis.connection.access import Access
from windlass.store.redis.connection.failpoints import as_verb
from windlass.store.redis.connection.portion import MAX_READ, by_queue, call_in_portions, first_portion
from windlass.store.redis.dependencies.mail import FollowUp, Message, delivery, text_of
from windlass.store.redis.operator.read_records import read_anywhere
from windlass.store.redis.records.record import Letter, unpack

ABANDONED_AFTER: Micros = 5 * SECOND
"""A child that has waited this long for an answer has no live producer."""
GIVE_UP_AFTER: Micros = 900 * SECOND
"""After this time an unknown parent, whose producer died before the enqueue, or a dropped result is given up."""

MAX_PAGES = 10

Requests = Mapping[str, tuple[list[JobId], Micros, int, int]]
"""Requests of parent_checks.lua, by queue."""


class WaitingChild(msgspec.Struct, frozen=True):
    """A child, and its parents that have not completed."""

    id: JobId
    queue: str
    since: Micros
    age: Micros
    parents: Sequence[JobId]
    result_params: str
    """The parents whose results it gets, as JSON."""


Outcome = tuple[Sequence[Message], Sequence[tuple[JobId, Micros]]]
"""Messages for children of a queue, and the children with the answers of all parents."""


async def begin_registration(access: Access, to_register: Mapping[str, Sequence[JobId]]) -> FollowUp:
    """Register these children with their parents; returns the work that is left."""
    to_do = FollowUp(set(), set())
    left = {queue: list(ids) for queue, ids in to_register.items() if ids}
    while left:
        await _register_page(access, {queue: (ids[:MAX_READ], 0, 0, 0) for queue, ids in left.items()}, to_do)
        left = {queue: rest for queue, ids in left.items() if (rest := ids[MAX_READ:])}
    return to_do


async def register_waiting(access: Access, queues: Iterable[str], least: Micros = 0) -> FollowUp:
    """Register a bounded number of children that have waited at least this long; skip those without an answer."""
    to_do = FollowUp(set(), set())
    passed = dict.fromkeys(queues, 0)
    for _ in range(MAX_PAGES):
        if not passed:
            break
        requests: Requests = {queue: ([], least, over, MAX_READ) for queue, over in passed.items()}
        unanswered, full = await _register_page(access, requests, to_do)
        passed = {queue: over + unanswered[queue] for queue, over in passed.items() if queue in full}
    return to_do


async def _register_page(access: Access, requests: Requests, to_do: FollowUp) -> tuple[Counter[str], set[str]]:
    """How many children of each queue got no answer, and the queues that may have more."""
    with as_verb(access.server.failpoint_wire, "register"):
        replies, _ = await access.call_reachable(
            "parent_checks", {queue: (request,) for queue, request in requests.items()}
        )
        children = [_child(queue, now, *row) for queue, (now, *rows) in replies.items() for row in rows]
        if not children:
            return Counter(), set()
        answers = await _answers(access, children)
        outcomes = {
            queue: _outcome(mine, answers) for queue, mine in by_queue(children, lambda child: child.queue).items()
        }
        await _deliver(access, outcomes, to_do)
    answered = Counter({queue: len(checked) for queue, (_, checked) in outcomes.items()})
    rows_of = Counter(child.queue for child in children)
    return rows_of - answered, {queue for queue, rows in rows_of.items() if rows == MAX_READ}


async def _deliver(access: Access, outcomes: Mapping[str, Outcome], to_do: FollowUp) -> None:
    """A child counts as registered only after all of its messages are delivered."""
    left = dict(outcomes)
    while left:
        requests = {}
        for queue, (messages, checked) in left.items():
            some = first_portion(messages, text_of)
            left[queue] = messages[len(some) :], checked
            requests[queue] = delivery(some, () if left[queue][0] else checked)
        to_do.note(await access.call_queues("deliver_mail", requests))
        left = {queue: each for queue, each in left.items() if each[0]}


def _child(queue: str, now: Micros, id_: bytes, since: Micros, value: bytes) -> WaitingChild:
    record = unpack(id_.decode(), value)
    parents, takes = (
        pending_parents(record.fields.parents or "[]", record.parent_results),
        record.fields.result_params or "",
    )
    return WaitingChild(record.id, queue, since, now - since, parents, takes)


Answers = dict[tuple[JobId, JobId], tuple[int, bytes | None]]
"""Letter and result, by parent and child; None: the result was dropped."""


def _outcome(children: Sequence[WaitingChild], answers: Answers) -> Outcome:
    messages: list[Message] = []
    checked: list[tuple[JobId, Micros]] = []
    for child in children:
        known = {parent: answer for parent in child.parents if (answer := _answer(child, parent, answers))}
        messages += [Message(child.queue, child.id, parent, *answer) for parent, answer in known.items()]
        if len(known) == len(child.parents):
            checked.append((child.id, child.since))
    return messages, checked


def _answer(child: WaitingChild, parent: JobId, answers: Answers) -> tuple[int, bytes] | None:
    """Letter and result for a child; None: register again later. A dropped result may still come by mail."""
    letter, result = answers.get((parent, child.id), (None, None))
    if letter is not None and (result is not None or parent not in child.result_params):
        return letter, result or b""
    return (Letter.CANCELLED, b"") if child.age >= GIVE_UP_AFTER else None


async def _answers(access: Access, children: Sequence[WaitingChild]) -> Answers:
    """The states of all parents that any queue has."""
    view = await read_anywhere(access, {parent for child in children for parent in child.parents})
    queue_of = {id_: tomb.queue for id_, tomb in view.tombstones.items()}
    queue_of |= {id_: seen.queue for id_, seen in view.jobs.items()}
    wanted: dict[str, list[tuple[JobId, JobId, str]]] = defaultdict(list)
    for child in children:
        for parent in child.parents:
            if (queue := queue_of.get(parent)) is not None:
                wanted[queue].append((parent, child.id, "" if queue == child.queue else child.queue))
    return await _call_register(access, wanted)


async def _call_register(access: Access, wanted: Mapping[str, Sequence[tuple[JobId, JobId, str]]]) -> Answers:
    answers: Answers = {}
    calls = call_in_portions(access, "register_children", wanted, done=lambda _, rows: len(rows))
    async for _, some, rows in calls:
        for (parent, child, _), row in zip(some, rows, strict=False):
            if row:
                answers[parent, child] = row[0], row[1] if len(row) > 1 else None
    return answers
