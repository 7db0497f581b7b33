"""From lines to lives: everything that was said about one job, and what concerns all of them."""

from collections.abc import Iterable
from typing import Any

import msgspec

from tests.support.checker.cut_claims import CutClaim, cut_claim
from tests.support.checker.lines import Line

FOREVER = 1 << 62
"""The time of what was never seen to happen."""


class Enqueued(msgspec.Struct):
    """One try of a producer: `step` is ok, fail, info, or invoke if no answer was seen."""

    facts: Line
    invoked: int
    step: str = "invoke"
    answered: int = FOREVER
    winner: str | None = None
    existing: bool = False


class Claim(msgspec.Struct, frozen=True):
    """A claim that brought the job."""

    attempt: int
    pid: int
    number: tuple[str, int]
    invoked: int
    answered: int
    payload: str
    given: dict[str, str] = {}
    """Parent → its result, as it was passed on."""


class Run(msgspec.Struct):
    """A handler at work; one without an end was cut short."""

    attempt: int
    pid: int
    payload: str
    start: int
    end: int | None = None
    outcome: str | None = None


class Ending(msgspec.Struct):
    """An attempt's end as told to the store, by its runner (settle) or by others (end, rescue)."""

    attempt: int
    status: str
    outcome: str
    invoked: int
    answered: int = FOREVER
    answer: str = "unknown"
    result: str | None = None
    """Of one that completed."""


class Act(msgspec.Struct):
    """What an operator did: cancel, retry, delete."""

    verb: str
    invoked: int
    done: bool | None = None


class Firing(msgspec.Struct):
    """What a coordinator wanted for the ticks of a schedule, and what became of it."""

    schedule: str
    revision: int
    was_next: int
    next: int | None
    missed: int
    ticks: list[int]
    jobs: list[str]
    now: int | None
    """The store's clock when it was decided."""
    done: bool | None = None
    """None: unknown."""
    enqueued: list[str] = []
    skipped: int = 0


class Life(msgspec.Struct):
    """One job."""

    id: str
    enqueues: list[Enqueued] = []
    claims: list[Claim] = []
    runs: list[Run] = []
    settles: list[Ending] = []
    put_backs: list[Ending] = []
    acts: list[Act] = []

    def acted(self, verb: str, before: int = FOREVER) -> int:
        """How often an operator may have done this."""
        return sum(1 for act in self.acts if act.verb == verb and act.done is not False and act.invoked < before)


class Fault(msgspec.Struct, frozen=True):
    """What the nemesis did, to which process, and until when jobs may have come into its victims' hands."""

    kind: str
    pids: frozenset[int]
    at: int
    until: int
    kills: bool = True
    """Whether it ends processes without warning; stops, pauses and faults of the store do not."""
    hides: bool = False
    """Whether claims pass over jobs meanwhile, because another session has locked them."""


class Times(msgspec.Struct):
    """A whole history."""

    lives: dict[str, Life] = {}
    faults: list[Fault] = []
    silent_put_backs: list[int] = []
    """When a process began to put jobs back and did not answer again: which jobs, was not written down."""
    claims: dict[tuple[str, int], int] = {}
    """When a claim was first asked: it may have been done then, and only the repeat was answered."""
    cut_claims: list[CutClaim] = []
    marks: dict[str, Line] = {}
    samples: dict[int, list[Line]] = {}
    rules: list[Line] = []
    """What queues were told."""
    schedules: dict[str, Line] = {}
    """What schedules were told, and where each was then."""
    final: dict[str, Line] = {}
    """Where the store says that each is in the end."""
    firings: dict[str, list[Firing]] = {}
    looks: dict[str, int] = {}
    """When each process last looked for what is due, by the store's clock."""
    lines: int = 0

    def life(self, id_: str) -> Life:
        return self.lives.setdefault(id_, Life(id_))


def gather(lines: Iterable[Line]) -> Times:
    """Read a history once."""
    times = Times()
    calls: dict[tuple[str, int], tuple[Line, list[Any]]] = {}
    for line in lines:
        times.lines += 1
        match line["what"]:
            case "start" | "end" if "step" not in line:
                _run(times.life(line["job"]), line)
            case "fault":
                until = line["until"] if "until" in line else line["at"]
                kills, hides = line.get("kills", True), line.get("hides", False)
                fault = Fault(line["kind"], frozenset(line["pids"]), line["at"], until, kills, hides)
                times.faults.append(fault)
            case "sample":
                times.samples.setdefault(line["of"], []).append(line)
            case "rules":
                times.rules.append(line)
            case "schedule":
                times.schedules[line["name"]] = line
            case "final":
                times.final[line["name"]] = line
            case "healed" | "drained" | "skips_locked":
                times.marks[line["what"]] = line
            case _ if line.get("step") == "invoke":
                calls[_call(line)] = (line, _invoked(times, line))
            case _ if "step" in line and _call(line) in calls:
                asked, parts = calls.pop(_call(line))
                _answered(times, asked, parts, line)
    for asked, _ in calls.values():
        if asked["what"] in ("end", "rescue"):
            times.silent_put_backs.append(asked["at"])
        elif asked["what"] == "claim":
            times.cut_claims.append(cut_claim(asked, None))
    return times


def process_of(line: Line) -> str:
    """Who wrote it: each process has a file of its own."""
    return str(line.get("file", f"{line['role']}-{line['pid']}"))


def _call(line: Line) -> tuple[str, int]:
    return process_of(line), line["call"]


def _run(life: Life, line: Line) -> None:
    if line["what"] == "start":
        life.runs.append(Run(line["attempt"], line["pid"], line["payload"], line["at"]))
        return
    for run in life.runs:
        if (run.attempt, run.pid, run.end) == (line["attempt"], line["pid"], None):
            run.end, run.outcome = line["at"], line["outcome"]
            return


def _invoked(times: Times, line: Line) -> list[Any]:
    """What a call is about, put into the lives at once: its caller may not live to hear the answer."""
    at, parts = line["at"], list[Any]()
    match line["what"]:
        case "claim":
            times.claims.setdefault((line["runner"], line["claim"]), at)
        case "enqueue":
            parts += _offered(times, line["jobs"], at)
        case "fire":
            parts += [(_wanted(times, each, line), _offered(times, each["jobs"], at)) for each in line["firings"]]
        case "settle":
            for facts in line["jobs"]:
                parts.append(
                    Ending(facts["attempt"], facts["status"], facts["outcome"], at, result=facts.get("result"))
                )
                times.life(facts["job"]).settles.append(parts[-1])
        case "cancel" | "retry" | "delete":
            for id_ in line["jobs"]:
                parts.append(Act(line["what"], at))
                times.life(id_).acts.append(parts[-1])
    return parts


def _offered(times: Times, jobs: list[Line], at: int) -> list[Enqueued]:
    found = []
    for facts in jobs:
        found.append(Enqueued(facts, at))
        times.life(facts["job"]).enqueues.append(found[-1])
    return found


def _wanted(times: Times, facts: Line, line: Line) -> Firing:
    firing = Firing(
        facts["name"],
        facts["revision"],
        facts["was_next"],
        facts["next"],
        facts["missed"],
        [job["tick"] for job in facts["jobs"]],
        [job["job"] for job in facts["jobs"]],
        times.looks.get(process_of(line)),
    )
    times.firings.setdefault(firing.schedule, []).append(firing)
    return firing


def _answered(times: Times, asked: Line, parts: list[Any], line: Line) -> None:
    step, at = line["step"], line["at"]
    match asked["what"]:
        case "enqueue":
            for place, enqueue_jobs in enumerate(parts):
                enqueue_jobs.step, enqueue_jobs.answered = step, at
                if step == "ok":
                    enqueue_jobs.winner, enqueue_jobs.existing = line["answers"][place]
        case "settle":
            for place, ending in enumerate(parts):
                ending.answered = at
                ending.answer = line["answers"][place] if step == "ok" else {"fail": "failed"}.get(step, "unknown")
        case "cancel" | "retry" | "delete":
            for place, act in enumerate(parts):
                act.done = line["done"][place] if step == "ok" else (False if step == "fail" else None)
        case "claim" if step == "ok":
            number = (asked["runner"], asked["claim"])
            for job in line["jobs"]:
                claim = Claim(job["attempt"], asked["pid"], number, times.claims[number], at, job["payload"])
                claim = msgspec.structs.replace(claim, given=job.get("given", {}))
                times.life(job["job"]).claims.append(claim)
        case "claim":
            times.cut_claims.append(cut_claim(asked, at))
        case "end" | "rescue" if step == "ok":
            for job in line["jobs"]:
                ending = Ending(job["attempt"], job["status"], job["outcome"], asked["at"], at, "settled")
                times.life(job["job"]).put_backs.append(ending)
        case "end" | "rescue" if step == "info":
            times.silent_put_backs.append(asked["at"])
        case "due" if step == "ok":
            times.looks[process_of(line)] = line["now"]
        case "fire" if step != "info":
            reported = line["fired"] if step == "ok" else [{"done": False} for _ in parts]
            for (firing, enqueues), became in zip(parts, reported, strict=True):
                _fired(firing, enqueues, became, at)


def _fired(firing: Firing, enqueues: list[Enqueued], became: Line, at: int) -> None:
    """What was not done was not enqueued, nor what was skipped."""
    firing.done, firing.enqueued = became["done"], became.get("jobs", [])
    firing.skipped = became.get("skipped", 0)
    for enqueue_jobs in enqueues:
        id_ = enqueue_jobs.facts["job"]
        enqueue_jobs.answered = at
        enqueue_jobs.step, enqueue_jobs.winner = ("ok", id_) if id_ in firing.enqueued else ("fail", None)
