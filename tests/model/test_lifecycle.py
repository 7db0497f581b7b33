"""Random walks through the contract: after every step the store and the reference agree on every job."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.model.agreement import Agreement
from tests.model.choices import (
    IDS,
    changes,
    fields,
    first_fields,
    ids,
    limits,
    link_fields,
    orders,
    picks,
    queues,
    waits,
)
from tests.model.leases import Leases
from tests.model.reference import Reference
from tests.support.clock import ManualClock
from tests.support.redis_books import wrong_books
from tests.support.seed import ENDINGS, LEASE, completed, new_job, request
from tests.support.stores import STORES
from windlass.core.flow.queue import NO_LIMIT, QueueSettings
from windlass.core.ids import JobId
from windlass.core.jobs.change import JobChange
from windlass.core.jobs.dependencies import parent_results
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import Claimed, Progress
from windlass.core.jobs.outcome import Settlement
from windlass.core.moments import DAY, SECOND, Micros
from windlass.core.status import Status
from windlass.errors import InvalidOption, KeyConflict, LeaseLost, QueueClosed
from windlass.store.postgres.connection.profile import SKEW
from windlass.store.records import ClaimRequest, LeaseRequest, Note, QueueQuota, RunnerEnd, Transition
from windlass.store.redis.store import RedisStore

T = TypeVar("T")

ADMITS_LATER = ("postgres", "postgres-pgbouncer", "yugabyte", "yugabyte-limits", "yugabyte-named")
MAX_PER_KEY = 2
"""What the walk's jobs say at most."""


class Lifecycle(Agreement):
    """One store, one reference, the same calls to both."""

    kind: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.store = STORES[self.kind].open(Path(self.folder.name), self.clock)
        self.model, self.leases = Reference(), Leases(SKEW if self.kind.startswith("yugabyte") else 0)
        self.runners: list[str] = []
        self.bystanders = 0
        self.claims: list[ClaimRequest] = []
        self.claimed: list[Claimed] = []
        self.settlements: list[Settlement] = []
        self.seen: dict[JobId, tuple[Status, int]] = {}

    def do(self, call: Coroutine[Any, Any, T]) -> T:
        """What moves jobs: a store may leave it to the next call to admit jobs that wait for a key."""
        answer = self.run(call)
        if self.kind in ADMITS_LATER:
            self.run(self.store.jobs.admit(0))
        return answer

    @property
    def now(self) -> Micros:
        return self.clock.wall()

    def teardown(self) -> None:
        if self.kind == "redis" and isinstance(self.store, RedisStore):
            assert self.run(wrong_books(self.store)) == [], "every place says of a job what its record says"
        self.run(self.store.close())
        self.loop.close()
        self.folder.cleanup()

    # Enqueuing and working

    @initialize(jobs=st.lists(st.fixed_dictionaries(first_fields), min_size=6, max_size=6))
    def begin(self, jobs: list[dict[str, Any]]) -> None:
        for n, each in enumerate(jobs):
            self.enqueue([{"id": IDS[n], "queue": "ab"[n % 2], **each}])
            self.clock.advance(1)
        self.open_runner()
        self.open_runner()

    @rule(batch=st.lists(st.fixed_dictionaries(fields), min_size=1, max_size=4))
    def enqueue(self, batch: list[dict[str, Any]]) -> None:
        jobs = [new_job(**each) for each in batch]
        expected = self.model.enqueue(jobs, self.now)
        if expected is None:
            with pytest.raises((KeyConflict, QueueClosed, InvalidOption)):
                self.do(self.store.jobs.enqueue(jobs))
            return
        answers = [(each.id, each.existing) for each in self.do(self.store.jobs.enqueue(jobs))]
        assert answers == expected
        # Seen as they were born: one may have been replaced since by another of its own batch.
        self.seen |= {id_: (Status.PENDING, 0) for id_, existing in answers if not existing}

    @rule(pick=picks, option=st.sampled_from(list(OnConflict)), wait=waits, window=st.sampled_from([0, 10 * SECOND]))
    def meet(self, pick: int, option: OnConflict, wait: Micros, window: Micros) -> None:
        """A new job with the key of a job that is or was there: most walks would have no conflicts without it."""
        keyed = [job for job in self.model.jobs.values() if job.key]
        unused = [id_ for id_ in IDS if id_ not in self.model.jobs and id_ not in self.model.graves]
        self.clock.advance(wait)
        if keyed and unused:
            met = keyed[-1 - pick % len(keyed)]
            fields = {"queue": met.queue, "idempotency_key": met.key, "idempotency_window": window}
            self.enqueue([{"id": unused[0], "on_conflict": option, **fields}])

    @rule(
        parents=st.lists(picks, min_size=1, max_size=2),
        links=st.lists(st.fixed_dictionaries(link_fields), min_size=1, max_size=3),
        takes=st.sampled_from(["results", "nothing", "ends"]),
        stranger=st.sampled_from([False] * 9 + [True]),
    )
    def link(self, parents: list[int], links: list[dict[str, Any]], takes: str, stranger: bool) -> None:
        """A child of jobs that are there, live or over, and those that come after it in the same enqueue."""
        known = list(self.model.jobs)
        unused = [id_ for id_ in IDS if id_ not in self.model.jobs and id_ not in self.model.graves]
        if not known or len(unused) <= len(links):
            return
        above = [known[-1 - pick % len(known)] for pick in parents] + ([unused[-1]] if stranger else [])
        batch: list[dict[str, Any]] = []
        for id_, each in zip(unused, links, strict=False):
            taken = tuple((f"p{n}", parent) for n, parent in enumerate(above)) if takes == "results" else ()
            ends = {"when_ended": takes == "ends"}
            batch.append({"id": id_, "parents": tuple(above), "result_params": taken, **ends, **each})
            if stranger:
                # Who would meet a key may be refused first, or be answered with who has it.
                batch[-1]["idempotency_key"] = None
            above = [id_]
        self.enqueue(batch)

    @rule(limit=st.integers(1, 5))
    def admit(self, limit: int) -> None:
        assert self.do(self.store.jobs.admit(limit)).jobs == self.model.admit(limit, self.now)

    @rule()
    def expire(self) -> None:
        assert len(self.do(self.store.jobs.expire(100))) == self.model.expire(self.now)

    @rule(pick=picks, limit=st.integers(1, 5), most=st.integers(1, 4), order=orders, again=st.booleans())
    def claim(self, pick: int, limit: int, most: int, order: list[str], again: bool) -> None:
        asked = self._holding(request(self._runner(pick), queues=tuple(order), limit=limit, most=most))
        if again and self.claims:
            asked = self.claims[-1]
        self.claims.append(asked)
        if not self.leases.holds(asked.runner, self.clock.since_boot()):
            if asked.runner in self.leases.ends:
                assert self.do(self.store.jobs.claim(asked)) == []
            else:
                with pytest.raises(LeaseLost):
                    self.do(self.store.jobs.claim(asked))
            self.open_runner()  # so that the walk goes on
            return
        all_jobs = self.model.jobs.values()
        ends_release = any(job.when_ended and job.waits_for for job in all_jobs)
        if any(job.expired(self.now) and (job.slot or ends_release) for job in all_jobs):
            # What comes after it at its key, or waits for its end, must not depend on when it goes.
            self.expire()
            self.attempts_never_fall_and_moves_are_legal()
        jobs = self.do(self.store.jobs.claim(asked))
        # A claim hands out nothing that has expired; how much of it goes away meanwhile is the store's affair.
        self.do(self.store.jobs.expire(100))
        self.model.expire(self.now)
        assert [(job.id, job.attempt) for job in jobs] == self.model.claim(asked)
        for job in jobs:
            given = (
                {}
                if job.result_params is None
                else dict(parent_results(job.result_params, job.parent_results).values())
            )
            expected = self.model.jobs[job.id].parent_results
            assert given == {parent: result or "null" for parent, result in expected.items()}
        self.claimed += jobs

    @rule(pick=picks, wait=waits, outcomes=st.lists(st.sampled_from(sorted(ENDINGS)), min_size=1, max_size=4))
    def work(self, pick: int, wait: Micros, outcomes: list[str]) -> None:
        """What a runner does all day, in one step: most walks would be idle without it."""
        self.clock.advance(wait)
        before = len(self.claimed)
        self.claim(pick, len(outcomes), 4, ["a", "b"], again=False)
        self.attempts_never_fall_and_moves_are_legal()
        fresh = self.claimed[before:]
        self.clock.advance(wait)
        self._settle([_ended(job, outcome) for job, outcome in zip(fresh, outcomes, strict=False)])

    @precondition(lambda self: self.claimed)
    @rule(batch=st.lists(st.tuples(picks, st.sampled_from(sorted(ENDINGS))), min_size=1, max_size=4))
    def settle(self, batch: list[tuple[int, str]]) -> None:
        # Also stale ones: whatever was claimed once may be settled now.
        unique = {(job.id, job.attempt): _ended(job, outcome) for job, outcome in map(self._one_claimed, batch)}
        self._settle(list(unique.values()))

    @precondition(lambda self: self.settlements)
    @rule(pick=picks)
    def settle_again(self, pick: int) -> None:
        self._settle([self.settlements[-1 - pick % len(self.settlements)]])

    def _settle(self, settlements: list[Settlement]) -> None:
        answers = self.do(self.store.jobs.settle(settlements))
        by_attempt = dict(zip(((s.id, s.attempt) for s in settlements), answers, strict=True))
        # A store may apply a batch in any order: no two of these are about the same attempt, so none is seen.
        assert by_attempt == {(s.id, s.attempt): self.model.settle(s, self.now) for s in settlements}
        self.settlements += settlements

    @precondition(lambda self: self.claimed)
    @rule(pick=picks, done=st.integers(0, 100))
    def note(self, pick: int, done: int) -> None:
        job, _ = self._one_claimed((pick, ""))
        said = Note(id=job.id, queue=job.queue, attempt=job.attempt, progress=Progress(done))
        self.run(self.store.jobs.note([said]))
        self.model.note(job.id, job.attempt, done)

    # What users do

    @rule(id_=ids, verb=st.sampled_from(["cancel", "retry", "retry", "delete", "run now"]))
    def operate(self, id_: JobId, verb: str) -> None:
        operator = self.store.operator
        if verb == "cancel":
            self._moved(self.do(operator.cancel([id_], "enough")), self.model.cancel(id_, self.now))
        elif verb == "retry":
            self._moved(self.do(operator.retry([id_])), self.model.retry(id_, self.now))
        elif verb == "run now":
            self._moved(self.do(operator.run_now([id_])), self.model.run_now(id_, self.now))
        else:
            self._moved(self.do(operator.delete([id_])), self.model.delete(id_, self.now))

    @rule(id_=ids, change=changes)
    def change(self, id_: JobId, change: dict[str, Any]) -> None:
        wanted = JobChange(**change)
        answers = self.do(self.store.operator.change([id_], wanted))
        self._moved(answers, self.model.change(id_, wanted, self.now))

    def _moved(self, answers: list[Transition | None], expected: tuple[Status, bool] | None) -> None:
        found = [each and (each.status, each.done) for each in answers]
        if self.kind in ADMITS_LATER and found == [(Status.BLOCKED, True)]:
            # It waited for its key, and has a key slot since.
            found = [(Status.PENDING, True)] if expected == (Status.PENDING, True) else found
        assert found == [expected]

    @rule(queue=queues, paused=st.booleans())
    def pause_or_resume(self, queue: str, paused: bool) -> None:
        if paused:
            self.run(self.store.queues.pause(queue, None))
            self.model.paused.add(queue)
        else:
            self.run(self.store.queues.resume(queue))
            self.model.paused.discard(queue)

    @rule(queue=queues, limit=limits)
    def limit(self, queue: str, limit: int) -> None:
        self.run(self.store.queues.change(queue, QueueSettings(max_concurrency=limit)))
        self.model.limits = {**self.model.limits, queue: limit}
        if limit == NO_LIMIT:
            del self.model.limits[queue]

    @rule(queue=queues, opens=st.booleans())
    def close_or_open(self, queue: str, opens: bool) -> None:
        self.run(self.store.queues.open(queue) if opens else self.store.queues.close(queue))
        self.model.closed -= {queue}
        self.model.closed |= set() if opens else {queue}

    # Runners and time

    @rule()
    def open_runner(self) -> None:
        runner = f"r{len(self.runners)}"
        self.runners.append(runner)
        self.run(self.store.leases.open(LeaseRequest(runner=runner, worker="w", length=LEASE)))
        self.leases.open(runner, LEASE, self.clock.since_boot())

    @rule(skip=picks)
    def renew(self, skip: int) -> None:
        chosen = [runner for n, runner in enumerate(self.runners[-4:]) if n != skip % 6]
        renewal = self.run(self.store.leases.renew("w", chosen, LEASE))
        assert list(renewal.kept) == self.leases.renew(chosen, LEASE, self.clock.since_boot())
        assert set(renewal.kept) | set(renewal.lost) == set(chosen)
        asked = {(job.id, job.attempt, job.runner) for job in self.model.jobs.values() if job.cancel_requested}
        running = {job.id for job in self.model.jobs.values() if job.runner in self.leases.ends}
        assert {(c.id, c.attempt, c.runner) for c in self.run(self.store.leases.cancels("w"))} == {
            each for each in asked if each[0] in running
        }

    @rule(pick=picks, crashed=st.booleans(), started=st.integers(0, 2))
    def end_runner(self, pick: int, crashed: bool, started: int) -> None:
        busy = sorted({job.runner for job in self.model.jobs.values() if job.runner})
        runner = busy[pick % len(busy)] if busy else self._runner(pick)
        held = self.run(self.store.jobs.held(runner))
        assert {each.id for each in held} == {job.id for job in self.model.jobs.values() if job.runner == runner}
        begun = frozenset((each.id, each.attempt) for each in held[:started])
        rescued = self.do(self.store.leases.end(RunnerEnd(runner=runner, started=begun, crashed=crashed)))
        assert {each.id for each in rescued} == self.model.end(runner, begun, crashed, self.now)
        self.leases.ends.pop(runner, None)

    def beat_elsewhere(self) -> None:
        """For longer than a lease."""
        self.bystanders += 1
        bystander = f"bystander{self.bystanders}"
        self.run(self.store.leases.open(LeaseRequest(runner=bystander, worker="another worker", length=LEASE)))
        self.leases.open(bystander, LEASE, self.clock.since_boot())
        for _ in range(5):
            self.clock.advance(LEASE // 4)
            self.run(self.store.leases.renew("another worker", [bystander], LEASE))
            self.leases.renew([bystander], LEASE, self.clock.since_boot())

    @rule(lapse=st.booleans())
    def rescue(self, lapse: bool) -> None:
        # Another runner keeps beating while all of ours fall silent: no outage, so no grace.
        if lapse:
            self.beat_elsewhere()
        rescued = self.do(self.store.leases.rescue(100))
        lost = self.leases.lapsed(LEASE, self.clock.since_boot())
        expected: set[JobId] = set()
        for runner in lost:
            del self.leases.ends[runner]
            expected |= self.model.lose(runner, self.now)
        assert {each.id for each in rescued} == expected

    @rule(time=st.sampled_from([1, SECOND, 8 * SECOND, 8 * SECOND, 14 * SECOND, 100 * SECOND, DAY, 8 * DAY]))
    def advance(self, time: Micros) -> None:
        self.clock.advance(time)

    @rule(prunes=st.booleans())
    def prune_or_reopen(self, prunes: bool) -> None:
        if prunes:
            self._prune()
        elif STORES[self.kind].lasting:
            self.run(self.store.close())
            self.store = STORES[self.kind].open(Path(self.folder.name), self.clock)

    def _prune(self) -> None:
        """A store may drop by the day: what is over for longer than that must be gone, what is not over must not."""
        over = self.model.over(self.now)
        named = set(self.run(self.store.operator.prune(100)))
        kept = {job.id for job in self.run(self.store.operator.get(sorted(over))) if job is not None}
        assert named <= over - kept
        assert not kept & self.model.over(self.now - DAY)
        self.model.prune(over - kept, self.now)

    def _runner(self, pick: int) -> str:
        recent = self.runners[-4:]
        return recent[-1 - pick % len(recent)]

    def _holding(self, asked: ClaimRequest) -> ClaimRequest:
        """A runner says what it holds of each queue."""
        mine = Counter(job.queue for job in self.model.jobs.values() if job.runner == asked.runner)
        quotas = tuple(QueueQuota(each.queue, each.limit, mine[each.queue]) for each in asked.quotas)
        return msgspec.structs.replace(asked, quotas=quotas)

    def _one_claimed(self, choice: tuple[int, str]) -> tuple[Claimed, str]:
        pick, outcome = choice
        return self.claimed[-1 - pick % len(self.claimed)], outcome


def _ended(job: Claimed, outcome: str) -> Settlement:
    """Each attempt that completes has a result of its own."""
    return completed(job, f'"{job.id} {job.attempt}"') if outcome == "completed" else ENDINGS[outcome](job)


FEW_WALKS, WALKS, WALKS_ON_POSTGRES, WALKS_UNDER_LIMITS = 15, 80, 50, 10
ROUND_TRIPS = {"postgres": WALKS_ON_POSTGRES, "yugabyte-limits": WALKS_UNDER_LIMITS, "yugabyte-named": FEW_WALKS}
FEW = [(kind, FEW_WALKS) for kind in ("postgres", "redis", "sqlite")]
MANY = [(kind, ROUND_TRIPS.get(kind, WALKS)) for kind in sorted(STORES)]


@pytest.mark.parametrize(
    ("kind", "walks"), [*FEW, *(pytest.param(*each, marks=pytest.mark.extended) for each in MANY)]
)
def test_the_store_and_the_reference_never_disagree(kind: str, walks: int) -> None:
    bounds = settings(max_examples=walks, stateful_step_count=50)

    run_state_machine_as_test(type("OnThisStore", (Lifecycle,), {"kind": kind}), settings=bounds)
