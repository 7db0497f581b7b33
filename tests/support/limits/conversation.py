"""One connection between a client and the server: what is passed on, what is refused, and what fails.

The server itself keeps the state of its transaction: in place of a statement that shall fail, it gets one that does.
In the extended protocol that is a text that cannot be parsed, whose error is rewritten on its way back; so a
transaction is aborted, messages are skipped until Sync, and ReadyForQuery tells the truth, without a word from here.
"""

import asyncio
import re
from collections import deque
from collections.abc import Callable

from tests.support.limits.faults import Dice, Failure
from tests.support.limits.messages import SYNC, error_fields, error_response, parse, query, strings
from tests.support.limits.statements import Kind, first_word, is_single, kind_of

IDLE, OPEN, ABORTED = b"I", b"T", b"E"
_FAULT = re.compile(r"windlass_fault_(\d+)")
_ANYWHERE = b"windlass fault"
"""The name of a statement that is never made, because its text cannot be parsed."""


class Cycle:
    """Requests that one ReadyForQuery answers."""

    def __init__(self, *, hidden: bool = False, only_error: bool = False) -> None:
        self.hidden = hidden
        """Whether the client did not ask for its ReadyForQuery."""
        self.only_error = only_error
        """Whether the client gets nothing but the error."""
        self.failed = False
        self.over = asyncio.Event()


class Conversation:
    """Takes every message of both sides, after the client has logged in."""

    def __init__(self, dice: Dice, send: Callable[[bytes], None]) -> None:
        """`send` sends to the server."""
        self._dice = dice
        self._send = send
        self._texts: dict[bytes, str] = {}
        """Of prepared statements, by their names."""
        self._portals: dict[bytes, str] = {}
        self._cycles: deque[Cycle] = deque()
        self._failures: list[Failure] = []
        self._status = IDLE
        """Of the transaction, as far as it is known: of answers that are under way it is not."""
        self._sequence: list[Kind] = []
        """What was executed since the last Sync."""
        self._broken = False
        """Whether something of this sequence fails: the rest of it is skipped."""
        self._skipping = False
        """Whether the server need not see anything before the next Sync."""

    async def request(self, letter: bytes, whole: bytes) -> None:
        """A message of the client."""
        if self._skipping and letter not in b"SX":
            return
        if letter == b"Q":
            self._query(strings(whole, 1)[0].decode(), whole)
        elif letter == b"P":
            self._parse(whole)
        elif letter == b"E":
            await self._execute(whole)
        elif letter == b"S":
            self._sync()
        else:
            if letter == b"B":
                portal, statement = strings(whole, 2)
                self._portals[portal] = self._texts.get(statement, "")
            self._send(whole)

    def answer(self, letter: bytes, whole: bytes) -> bytes:
        """A message of the server: what the client gets of it."""
        cycle = self._cycles[0] if self._cycles else None
        if letter == b"E":
            if cycle is not None:
                cycle.failed = True
            return self._translated(whole)
        if letter == b"Z" and cycle is not None:
            self._cycles.popleft()
            if not self._cycles:
                self._status = whole[5:6]
            cycle.over.set()
            return b"" if cycle.hidden else whole
        return b"" if cycle is not None and cycle.only_error else whole

    def _translated(self, whole: bytes) -> bytes:
        found = _FAULT.search(error_fields(whole).get("M", ""))
        return error_response(*self._failures[int(found[1])]) if found else whole

    # The simple protocol.

    def _query(self, text: str, whole: bytes) -> None:
        kind = kind_of(text)
        if (failure := self._refusal(kind, text) or self._failure(kind)) is not None:
            self._ask(query(failure.block))
        elif kind is Kind.COMMIT and self._status == OPEN and is_single(text):
            failure = self._dice.commit_fails("explicit")
            if failure is None:
                self._ask(whole)
            else:
                self._ask(query(f"ROLLBACK; {failure.block}"), Cycle(only_error=True))
        elif kind is Kind.DATA and self._status == IDLE and is_single(text):
            failure = self._dice.commit_fails("implicit")
            # Several statements in one message are one transaction.
            self._ask(whole if failure is None else query(f"{text}\n;{failure.block}"))
        else:
            self._ask(whole)
        self._note(kind)

    def _ask(self, whole: bytes, cycle: Cycle | None = None) -> None:
        self._cycles.append(cycle or Cycle())
        self._sequence.clear()
        self._send(whole)

    # The extended protocol.

    def _parse(self, whole: bytes) -> None:
        name, written = strings(whole, 2)
        text = written.decode()
        if kind_of(text) is Kind.REFUSED and self._dice.limits.refusing:
            self._fail(self._dice.refuse(first_word(text)), name)
            return
        self._texts[name] = text
        self._send(whole)

    async def _execute(self, whole: bytes) -> None:
        text = self._portals.get(strings(whole, 1)[0], "")
        kind = kind_of(text)
        if (failure := self._refusal(kind, text) or self._failure(kind)) is not None:
            self._fail(failure)
        elif kind is Kind.COMMIT and self._status == OPEN and (failure := self._dice.commit_fails("explicit")):
            await self._fail_commit(failure, whole)
        else:
            self._send(whole)
            self._sequence.append(kind)
            self._note(kind)

    def _sync(self) -> None:
        alone = self._sequence and not self._broken and all(kind is Kind.DATA for kind in self._sequence)
        if alone and self._status == IDLE and (failure := self._dice.commit_fails("implicit")):
            self._fail(failure)
        self._cycles.append(Cycle())
        self._send(SYNC)
        self._sequence.clear()
        self._broken = self._skipping = False

    def _fail(self, failure: Failure, name: bytes = _ANYWHERE) -> None:
        self._failures.append(failure)
        self._send(parse(name, f"windlass_fault_{len(self._failures) - 1}"))
        self._broken = True

    async def _fail_commit(self, failure: Failure, whole: bytes) -> None:
        """The transaction is rolled back, the client gets the error, and the rest until Sync is skipped."""
        before = Cycle(hidden=True)
        self._cycles.append(before)
        self._send(SYNC)
        await before.over.wait()
        if not before.failed and self._status != OPEN:
            self._send(whole)  # there was no transaction to commit
            return
        self._skipping = True
        if not before.failed:
            self._ask(query(f"ROLLBACK; {failure.block}"), Cycle(hidden=True, only_error=True))
            self._note(Kind.ROLLBACK)

    # Both.

    def _refusal(self, kind: Kind, text: str) -> Failure | None:
        if not self._dice.limits.refusing:
            return None
        if kind is Kind.REFUSED:
            return self._dice.refuse(first_word(text))
        if kind is Kind.SCHEMA and self._status == OPEN:
            return self._dice.refuse("DDL in a transaction")
        return None

    def _failure(self, kind: Kind) -> Failure | None:
        if kind in (Kind.DATA, Kind.SCHEMA) and self._status != ABORTED and not self._broken:
            return self._dice.fails()
        return None

    def _note(self, kind: Kind) -> None:
        if kind is Kind.BEGIN:
            self._status = OPEN
        elif kind in (Kind.COMMIT, Kind.ROLLBACK):
            self._status = IDLE
