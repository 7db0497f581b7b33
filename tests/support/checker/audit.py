"""The audit: every law over every job, and for each violation the lines around it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from tests.support.checker.among import AMONG
from tests.support.checker.flow import FLOW
from tests.support.checker.graphs import GRAPHS
from tests.support.checker.groups import GROUPS
from tests.support.checker.laws import LAWS
from tests.support.checker.lines import Line, mentions, show
from tests.support.checker.links import LINKS
from tests.support.checker.lives import Times, gather
from tests.support.checker.ticks import TICKS

MAX_SHOWN = 20
MAX_LINES = 40


class Violation(msgspec.Struct, frozen=True):
    """A broken law."""

    law: str
    job: str | None
    problem: str


class Report(msgspec.Struct, frozen=True):
    """What was found, in Jepsen's words where there are any."""

    violations: list[Violation]
    figures: dict[str, int]
    lines: Sequence[Line]

    @property
    def laws(self) -> set[str]:
        return {each.law for each in self.violations}

    def __str__(self) -> str:
        zero = self.lines[0]["at"] if self.lines else 0
        pages = [f"{len(self.violations)} violations; {self.figures}"]
        for each in self.violations[:MAX_SHOWN]:
            pages.append(f"{each.law} {each.job or ''}: {each.problem}")
            pages += [show(line, zero) for line in self._around(each)[:MAX_LINES]]
        return "\n".join(pages)

    def _around(self, violation: Violation) -> list[Line]:
        """The lines about its job, and what happened in the meantime."""
        about = [line["at"] for line in self.lines if violation.job and mentions(line, violation.job)]
        first, last = (about[0], about[-1]) if about else (0, 0)
        return [
            line
            for line in self.lines
            if (violation.job and mentions(line, violation.job))
            or (line["what"] in ("fault", "healed", "drained") and first <= line["at"] <= last)
        ]


def audit(lines: Iterable[Line], dump: Sequence[dict[str, Any]], counts: Mapping[str, int]) -> Report:
    """Judge a history and a dump of the store, taken after it."""
    kept = list(lines)
    times = gather(kept)
    jobs = {job["id"]: job for job in dump}
    violations = [
        Violation("I1", job["id"], "it is in the store twice") for job in dump if job is not jobs[job["id"]]
    ]
    for id_ in {**times.lives, **jobs}:
        life = times.life(id_)
        for law, broken in LAWS.items():
            violations += [Violation(law, id_, problem) for problem in broken(life, jobs.get(id_), times)]
    for law, found in (*AMONG, *FLOW, *LINKS, *GROUPS, *GRAPHS, *TICKS):
        violations += [Violation(law, id_, problem) for id_, problem in found(times, jobs, counts)]
    return Report(violations, _figures(times, jobs), kept)


def _figures(times: Times, jobs: Mapping[str, Any]) -> dict[str, int]:
    lives = times.lives.values()
    known = {life.id for life in lives for each in life.enqueues if each.step == "ok" and each.winner == life.id}
    unsure = {life.id for life in lives if any(each.step != "fail" for each in life.enqueues)} - known
    deleted = {life.id for life in lives if life.acted("delete")}
    return {
        "lines": times.lines,
        "acknowledged": len(known),
        "lost": len(known - jobs.keys() - deleted),
        "recovered": len(unsure & jobs.keys()),
        "runs": sum(len(life.runs) for life in lives),
        "duplicated": sum(1 for life in lives if len(life.runs) > 1),
        "stale": sum(1 for life in lives for each in life.settles if each.answer == "stale"),
        "faults": len(times.faults),
    }
