"""Calls that must succeed in the end: repeated with growing, jittered pauses until the store is back."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from windlass.core.events import Emit, StoreBack, StoreTrouble
from windlass.errors import SchemaMismatch, StoreUnavailable

T = TypeVar("T")

SHORTEST, LONGEST = 0.05, 2.0


async def persist(doing: str, call: Callable[[], Awaitable[T]], emit: Emit, *, hopeful: bool = True) -> T:
    """The call's answer, however long the store is away. Every verb is safe to repeat, so repeating is safe.

    Who has nothing to lose yet is not `hopeful`: a trouble that is likely to last ends the wait.
    """
    pause, troubled = SHORTEST, False
    while True:
        try:
            answer = await call()
        except SchemaMismatch:
            raise
        except StoreUnavailable as error:
            if error.lasting and not hopeful:
                raise
            if not troubled:
                emit(StoreTrouble(doing=doing, problem=str(error)))
            troubled = True
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, LONGEST)
        else:
            if troubled:
                emit(StoreBack(doing=doing))
            return answer
