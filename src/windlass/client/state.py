"""What the start hooks of a process made, for handlers, middleware and stop hooks."""

from typing import Any


class State:
    """A place for pools and clients: `state.pool = …` in `@app.on_start`, `ctx.state.pool` in a handler.

    Each process that runs handlers has one of its own, which all its handlers share.
    """

    def __getattr__(self, name: str) -> Any:
        # Only called for what is not there.
        raise AttributeError(f"state has no {name!r}; an @app.on_start hook that says `state.{name} = …` makes it")

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"State({', '.join(sorted(vars(self)))})"
