"""Coroutines of Windlass that a handler made and never awaited: their work is not done, so the attempt fails."""

import sys
import warnings
from collections.abc import Callable
from types import CoroutineType
from typing import Any, TypeAlias

from windlass.client.tasks.context import Context, entered

_HOOK = "_warn_unawaited_coroutine"
"""In `warnings`: Python calls it with a coroutine that is dropped before its first step."""
_OURS = "windlass"

Dropped: TypeAlias = "CoroutineType[Any, Any, Any]"


class Noticing:
    """Python's hook, with this one before it."""

    def __init__(self, warn: Callable[[Dropped], None]) -> None:
        self._warn = warn

    def __call__(self, coroutine: Dropped) -> None:
        made = coroutine.cr_frame
        if made is not None and made.f_globals.get("__name__", "").partition(".")[0] == _OURS:
            owner = made.f_locals.get("self")
            # The context that made it, if any: the garbage collector may drop it during another attempt.
            link = owner._link if isinstance(owner, Context) else entered.get(None)
            if link is not None:
                link.unawaited = coroutine.__qualname__.replace("Context.", "ctx.")
        if coroutine.cr_origin is not None:
            self._warn(coroutine)  # it says where it was made
            return
        # As Python would, which takes file and line from the frame above its hook.
        frame = sys._getframe(1)
        text = f"coroutine '{coroutine.__qualname__}' was never awaited"
        registry = frame.f_globals.setdefault("__warningregistry__", {})
        warnings.warn_explicit(
            text,
            RuntimeWarning,
            frame.f_code.co_filename,
            frame.f_lineno,
            frame.f_globals.get("__name__"),
            registry,
            source=coroutine,
        )


def notice_unawaited() -> None:
    """Install the hook in this process; an earlier hook still runs."""
    present = getattr(warnings, _HOOK, None)
    if present is not None and type(present) is not Noticing:
        setattr(warnings, _HOOK, Noticing(present))
