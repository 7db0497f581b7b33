"""Children that ask for their parents: each learns how they are, and is told from then on.

A child is stored first, and is in `asking` in its own queue until all of its parents have answered (`register`). So
one whose producer died in between is found again, and whatever a parent does meanwhile, the child is told of it or
learns it by asking. One that waits for long asks again from time to time: a failover may have lost what its parent's
queue knew of it, or what it was told.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from windlass.core.chain import parents_left
from windlass.core.ids import JobId
from windlass.core.moments import SECOND, Micros
from windlass.store.redis.access import Access
from windlass.store.redis.anywhere import see_anywhere
from windlass.store.redis.failpoints import naming
from windlass.store.redis.mail import Message, ToDo, delivery, text_of
from windlass.store.redis.portion import first_portion
from windlass.store.redis.record import Letter, unpack
from windlass.store.redis.sight import MOST_SEEN

LEFT_ALONE: Micros = 5 * SECOND
"""Who has asked for so long has nobody who asks for it: its producer may be dead."""
GIVEN_UP: Micros = 900 * SECOND
"""A parent that nobody knows for so long will not come: it was to be handed in elsewhere, and its producer died. Nor
will the result of one that is gone."""

MOST_PAGES = 10

Requests = Mapping[str, tuple[list[JobId], Micros, int, int]]
"""Of asking.lua, by queue."""


class Asker(msgspec.Struct, frozen=True):
    """A child, and which of its parents have not come yet."""

    id: JobId
    queue: str
    since: Micros
    age: Micros
    parents: Sequence[JobId]
    takes: str
    """Whose results it gets, as JSON."""


Told = tuple[Sequence[Message], Sequence[tuple[JobId, Micros]]]
"""What children of a queue are told, and who of them has asked enough then."""


async def ask(access: Access, asking: Mapping[str, Sequence[JobId]]) -> ToDo:
    """Let these ask: what is to be done then."""
    to_do = ToDo(set(), set())
    left = {queue: list(ids) for queue, ids in asking.items() if ids}
    while left:
        await _ask(access, {queue: (ids[:MOST_SEEN], 0, 0, 0) for queue, ids in left.items()}, to_do)
        left = {queue: rest for queue, ids in left.items() if (rest := ids[MOST_SEEN:])}
    return to_do


async def ask_for_all(access: Access, queues: Iterable[str], least: Micros = 0) -> ToDo:
    """Let all ask who have been at it for so long, a bounded number. Who gets no answer holds nobody else up."""
    to_do = ToDo(set(), set())
    passed = dict.fromkeys(queues, 0)
    for _ in range(MOST_PAGES):
        if not passed:
            break
        requests: Requests = {queue: ([], least, over, MOST_SEEN) for queue, over in passed.items()}
        unanswered, full = await _ask(access, requests, to_do)
        passed = {queue: over + unanswered[queue] for queue, over in passed.items() if queue in full}
    return to_do


async def _ask(access: Access, requests: Requests, to_do: ToDo) -> tuple[Counter[str], set[str]]:
    """How many of each queue got no answer, and the queues that may have more."""
    with naming(access.server.watched, "register"):
        replies = await access.calls("asking", {queue: (request,) for queue, request in requests.items()})
        askers = [_asker(queue, now, *row) for queue, (now, *rows) in replies.items() for row in rows]
        if not askers:
            return Counter(), set()
        answers = await _answers(access, askers)
        told = {queue: _told(mine, answers) for queue, mine in _by_queue(askers).items()}
        await _deliver(access, told, to_do)
    answered = Counter({queue: len(asked) for queue, (_, asked) in told.items()})
    rows_of = Counter(asker.queue for asker in askers)
    return rows_of - answered, {queue for queue, rows in rows_of.items() if rows == MOST_SEEN}


async def _deliver(access: Access, told: Mapping[str, Told], to_do: ToDo) -> None:
    """Who has asked has done so only when it was told everything."""
    left = dict(told)
    while left:
        requests = {}
        for queue, (messages, asked) in left.items():
            some = first_portion(messages, text_of, MOST_SEEN)
            left[queue] = messages[len(some) :], asked
            requests[queue] = delivery(some, () if left[queue][0] else asked)
        to_do.note(await access.calls("deliver", requests))
        left = {queue: each for queue, each in left.items() if each[0]}


def _asker(queue: str, now: Micros, id_: bytes, since: Micros, value: bytes) -> Asker:
    record = unpack(id_.decode(), value)
    parents, takes = parents_left(record.fields.parents or "[]", record.input), record.fields.takes or ""
    return Asker(record.id, queue, since, now - since, parents, takes)


def _by_queue(askers: Sequence[Asker]) -> dict[str, list[Asker]]:
    found: dict[str, list[Asker]] = defaultdict(list)
    for asker in askers:
        found[asker.queue].append(asker)
    return found


Answers = dict[tuple[JobId, JobId], tuple[int, bytes | None]]
"""Letter and result, by parent and child; None: the result is gone."""


def _told(askers: Sequence[Asker], answers: Answers) -> Told:
    messages: list[Message] = []
    asked: list[tuple[JobId, Micros]] = []
    for asker in askers:
        known = {parent: answer for parent in asker.parents if (answer := _answer(asker, parent, answers))}
        messages += [Message(asker.queue, asker.id, parent, *answer) for parent, answer in known.items()]
        if len(known) == len(asker.parents):
            asked.append((asker.id, asker.since))
    return messages, asked


def _answer(asker: Asker, parent: JobId, answers: Answers) -> tuple[int, bytes] | None:
    """None: it must ask again. A result that it takes and that is gone may still come by mail."""
    letter, result = answers.get((parent, asker.id), (None, None))
    if letter is not None and (result is not None or parent not in asker.takes):
        return letter, result or b""
    return (Letter.CANCELLED, b"") if asker.age >= GIVEN_UP else None


async def _answers(access: Access, askers: Sequence[Asker]) -> Answers:
    """Of all parents that are anywhere."""
    sight = await see_anywhere(access, {parent for asker in askers for parent in asker.parents})
    places = {id_: tomb.queue for id_, tomb in sight.tombs.items()}
    places |= {id_: seen.queue for id_, seen in sight.jobs.items()}
    wanted: dict[str, list[tuple[JobId, JobId, str]]] = defaultdict(list)
    for asker in askers:
        for parent in asker.parents:
            if (queue := places.get(parent)) is not None:
                wanted[queue].append((parent, asker.id, "" if queue == asker.queue else asker.queue))
    return await _register(access, wanted)


async def _register(access: Access, wanted: Mapping[str, Sequence[tuple[JobId, JobId, str]]]) -> Answers:
    answers: Answers = {}
    left: Mapping[str, Sequence[tuple[JobId, JobId, str]]] = wanted
    while left:
        some = {queue: entries[:MOST_SEEN] for queue, entries in left.items()}
        replies: dict[str, list[Any]] = await access.calls("register", {q: (mine,) for q, mine in some.items()})
        for queue, rows in replies.items():
            for (parent, child, _), row in zip(some[queue], rows, strict=True):
                if row:
                    answers[parent, child] = row[0], row[1] if len(row) > 1 else None
        left = {queue: rest for queue, entries in left.items() if (rest := entries[MOST_SEEN:])}
    return answers
