"""Hidden fields: parts of payloads, results and meta that a server does not show."""

from collections.abc import Iterable
from typing import Any

import msgspec

from windlass.core.text import shown
from windlass.errors import InvalidOption, InvalidPayload

HIDDEN = "[hidden]"
"""Stands for a hidden value. In an edited payload it means the value that is stored."""
MAX_RULES = 100
MAX_RULE = 200
ANY_FIELD = "*"
Path = tuple[str, ...]


class HiddenFields(msgspec.Struct, frozen=True):
    """Names of fields at any depth, and paths from the top, all in lower case. Elements of lists are not steps."""

    names: frozenset[str] = frozenset()
    paths: frozenset[Path] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.names or self.paths)

    def matches(self, path: Path) -> bool:
        """Whether the field at this path is hidden."""
        return path[-1] in self.names or any(_fits(rule, path) for rule in self.paths)

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules as texts that `parse_hidden` takes."""
        return tuple(sorted([*self.names, *(".".join(path) for path in self.paths)]))

    def covers(self, path: str) -> bool:
        """Whether a dotted path leads to a hidden field or into one, which must not be searched."""
        steps = tuple(path.lower().split("."))
        return not self.names.isdisjoint(steps) or any(_leads(steps, rule) for rule in self.paths)


NOTHING_HIDDEN = HiddenFields()


def parse_hidden(rules: Iterable[str]) -> HiddenFields:
    """The fields of rules: `password` is a field of any object, `card.number` a path, `*.token` any field's token."""
    found = [_steps(rule) for rule in rules]
    if len(found) > MAX_RULES:
        raise InvalidOption("hide", f"has {len(found)} rules; at most {MAX_RULES}")
    names = frozenset(steps[0] for steps in found if len(steps) == 1)
    return HiddenFields(names, frozenset(steps for steps in found if len(steps) > 1))


def _steps(rule: str) -> Path:
    steps = tuple(rule.strip().lower().split("."))
    if not all(steps) or len(rule) > MAX_RULE or steps == (ANY_FIELD,):
        raise InvalidOption("hide", f"{shown(rule)} is neither a field's name nor a path such as card.number")
    return steps


def conceal(value: Any, fields: HiddenFields) -> Any:
    """The value with HIDDEN instead of every hidden field."""
    return _conceal(value, (), fields) if fields else value


def _conceal(value: Any, path: Path, fields: HiddenFields) -> Any:
    if isinstance(value, dict):
        made = {}
        for name, child in value.items():
            here = (*path, str(name).lower())
            made[name] = HIDDEN if fields.matches(here) else _conceal(child, here, fields)
        return made
    if isinstance(value, list | tuple):
        return [_conceal(child, path, fields) for child in value]
    return value


def reveal(edited: Any, stored: Any, fields: HiddenFields) -> Any:
    """The edited value, in which HIDDEN stands for what is stored at the same path.

    Raises InvalidPayload where nothing is stored, or where a list has another length: its elements may have moved.
    """
    return _reveal(edited, stored, (), fields) if fields else edited


def _reveal(edited: Any, stored: Any, path: Path, fields: HiddenFields) -> Any:
    if isinstance(edited, dict):
        held = stored if isinstance(stored, dict) else {}
        made = {}
        for name, child in edited.items():
            here = (*path, str(name).lower())
            if child == HIDDEN and fields.matches(here):
                if name not in held:
                    raise InvalidPayload(".".join((*path, str(name))), "is hidden: give its value, or leave it out")
                made[name] = held[name]
            else:
                made[name] = _reveal(child, held.get(name), here, fields)
        return made
    if isinstance(edited, list):
        same = isinstance(stored, list) and len(stored) == len(edited)
        return [_reveal(child, stored[i] if same else None, path, fields) for i, child in enumerate(edited)]
    return edited


def _leads(steps: Path, rule: Path) -> bool:
    """Whether steps lead to a rule's field or into it. A number is a field, or a list element, which is no step."""
    if not rule or not steps:
        return not rule
    if rule[0] in (ANY_FIELD, steps[0]) and _leads(steps[1:], rule[1:]):
        return True
    return steps[0].isdecimal() and _leads(steps[1:], rule)


def _fits(rule: Path, path: Path) -> bool:
    return len(rule) == len(path) and all(step in (ANY_FIELD, name) for step, name in zip(rule, path, strict=True))
