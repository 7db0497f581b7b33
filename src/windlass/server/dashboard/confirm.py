"""Confirmation of a change: a page that repeats the form, with the count; a large count must be typed."""

import msgspec

from windlass.server.dashboard.page import Reply, Shown, View

TYPED_FROM = 100
"""From this many jobs on, the number must be typed."""


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """A text field of a confirmation."""

    name: str
    label: str
    value: str = ""
    example: str = ""
    error: str = ""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change that waits for a confirmation."""

    question: str
    button: str
    back: str
    count: int | None = 1
    """How many jobs, queues or schedules it changes; None: not known."""
    danger: bool = True
    detail: str = ""
    jobs: tuple[str, ...] = ()
    """The first of the jobs, to be listed."""
    inputs: tuple[Input, ...] = ()
    """What is to be filled in besides."""

    @property
    def must_type(self) -> bool:
        """Whether the count must be typed."""
        return self.count is not None and self.count >= TYPED_FROM


def confirm(view: View, action: str, change: Change) -> Reply | None:
    """The confirmation page, or None if the form confirms this count."""
    expected = str(change.count)
    wrong = ""
    if view.given("confirmed"):
        typed = view.given("typed").replace(",", "").strip()
        if change.must_type and typed != expected:
            wrong = f"the number is {expected}; you typed {typed[:20] or 'nothing'}"
        elif not any(each.error for each in change.inputs):
            return None
    own = {*_OWN, *(each.name for each in change.inputs)}
    kept = [(name, value) for name, values in view.form.items() for value in values if name not in own]
    context = {"change": change, "action": action, "fields": kept, "wrong": wrong}
    return Shown("confirm.html", change.question, context)


_OWN = ("csrf", "confirmed", "typed")
