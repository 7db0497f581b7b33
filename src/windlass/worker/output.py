"""What a cell prints: its last lines are kept for the job's record, and printing never blocks."""

import asyncio
import codecs
import os
from collections import deque

from windlass.core.text import printable

MOST_LINES = 50
LONGEST_LINE = 500


class Output(asyncio.Protocol):
    """The reading end of a cell's pipe. Everything is read; all but the last lines are forgotten."""

    def __init__(self) -> None:
        # Characters may be cut in two by the pipe.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._lines: deque[str] = deque(maxlen=MOST_LINES)
        self._open = ""
        self._mark = ""
        self._transport: asyncio.ReadTransport | None = None
        self.complete = asyncio.Event()
        """Set when all that the present job printed has arrived."""
        self.closed = asyncio.Event()
        """Set when nobody can print any more."""

    @classmethod
    async def of(cls, read: int) -> "Output":
        """What comes out of this end of a pipe."""
        output = cls()
        pipe = os.fdopen(read, "rb", 0)
        output._transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: output, pipe)
        return output

    def close(self) -> None:
        """Hang up: what is printed from now on is nobody's business."""
        if self._transport is not None:
            self._transport.close()

    def expect(self, mark: str) -> None:
        """From now on it is another job's, until this mark."""
        self._mark = mark
        self.complete.clear()

    def data_received(self, data: bytes) -> None:
        """Some more of it."""
        *whole, self._open = (self._open + self._decoder.decode(data)).split("\n")
        if self._mark in whole:
            whole = whole[: whole.index(self._mark)]
            if whole and not whole[-1]:
                whole.pop()  # the mark begins on a line of its own
            self.complete.set()
        # The end of a long line, as of a long output: that is where things went wrong.
        self._lines.extend(line[-LONGEST_LINE:] for line in whole[-MOST_LINES:])
        self._open = self._open[-LONGEST_LINE:]

    def connection_lost(self, error: Exception | None) -> None:
        """Every process that held the other end is gone, or we hung up."""
        self.complete.set()
        self.closed.set()

    def take(self) -> list[str]:
        """What was printed since the last time."""
        lines = [*self._lines, *([self._open] if self._open else [])]
        self._lines.clear()
        self._open = ""
        return [printable(line) for line in lines[-MOST_LINES:]]
