"""Check a worker: every rule, one after the other, with a verdict on each."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from windlass.testing.workers.rules import OPTIONAL, RULES, Rule
from windlass.testing.workers.stage import LEASE, Broken, Stage


class Verdict(msgspec.Struct, frozen=True):
    """The verdict on one rule."""

    rule: str
    text: str
    problem: str | None = None
    skipped: bool = False
    """Whether the worker does not know the type that the rule needs, and need not know it."""

    @property
    def passed(self) -> bool:
        """Whether the worker follows it, as far as was checked."""
        return self.problem is None


def check_worker(
    command: Sequence[str],
    chosen: Sequence[str] = (),
    tell: Callable[[Verdict], None] = lambda verdict: None,
    lease: float = LEASE,
) -> list[Verdict]:
    """Start the worker's command, and check it against the rules, all or those that are chosen by name."""
    with Stage(command, lease) as stage:
        verdicts = []
        for verdict in _verdicts(stage, chosen):
            tell(verdict)
            verdicts.append(verdict)
        return verdicts


def rule_names() -> list[str]:
    """The names of all rules."""
    return [rule.__name__ for _, rule in RULES]


def _verdicts(stage: Stage, chosen: Sequence[str]) -> Iterator[Verdict]:
    for type_, rule in RULES:
        if chosen and rule.__name__ not in chosen:
            continue
        text = (rule.__doc__ or "").splitlines()[0]
        yield _verdict(stage, type_, rule, Verdict(rule.__name__, text))


def _verdict(stage: Stage, type_: str, rule: Rule, found: Verdict) -> Verdict:
    try:
        stage.proxy.restore()
        stage.start()
        if type_ in OPTIONAL and f"check.{type_}" not in stage.types():
            return msgspec.structs.replace(found, skipped=True)
        rule(stage)
    except Broken as broken:
        stage.proxy.restore()
        stage.clear()
        return msgspec.structs.replace(found, problem=str(broken))
    return found
