"""What always holds: the store and the reference agree on every job, and the laws of both hold."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis.stateful import RuleBasedStateMachine, invariant

from tests.model.choices import IDS
from tests.model.reference import Reference
from windlass.core.ids import JobId
from windlass.core.jobs.dependencies import parent_in_reason
from windlass.core.status import LIVE, Status, may_move
from windlass.store.contract import Store
from windlass.store.records import JobFilter

T = TypeVar("T")


class Agreement(RuleBasedStateMachine):
    """A walk that looks at both after every step."""

    loop: asyncio.AbstractEventLoop
    store: Store
    model: Reference
    seen: dict[JobId, tuple[Status, int]]

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(call)

    @invariant()
    def every_job_is_in_one_place_and_as_the_reference_says(self) -> None:
        page = self.run(self.store.operator.list(JobFilter(), 100, None))
        listed = {job.id: job for job in page.items}
        assert len(listed) == len(page.items)
        assert set(listed) == set(self.model.jobs)
        for found in self.run(self.store.operator.get(IDS)):
            if found is None:
                continue
            job = self.model.jobs[found.id]
            assert (found.status, found.attempt) == (job.status, job.attempt)
            assert (found.failures, found.crashes) == (job.failures, job.crashes)
            assert (found.queue, found.priority) == (job.queue, job.priority)
            assert found.cancel_requested == job.cancel_requested
            assert job.runner is None or found.worker == job.runner
            ended = {each.attempt: each.outcome for each in found.attempts if each.outcome != "running"}
            assert ended == job.ended
            assert (found.progress and found.progress.done) == self.model.progress.get(found.id)
            assert listed[found.id].status is found.status
            assert set(found.parents) == set(job.parents)
            if job.status is Status.CANCELLED:
                assert (parent_in_reason(found.reason) in job.waits_for) is job.cancelled_by_parent

    @invariant()
    def attempts_never_fall_and_moves_are_legal(self) -> None:
        for id_, job in self.model.jobs.items():
            status, attempt = self.seen.get(id_, (None, 0))
            assert job.attempt >= attempt
            assert job.status is status or may_move(status, job.status)
            self.seen[id_] = (job.status, job.attempt)

    @invariant()
    def counts_are_exact(self) -> None:
        expected = Counter((job.queue, str(job.status)) for job in self.model.jobs.values())
        counted = self.run(self.store.operator.counts()).queues
        assert {(q, s): n for q, by_status in counted.items() for s, n in by_status.items() if n} == expected

    @invariant()
    def limits_hold(self) -> None:
        page = self.run(self.store.operator.list(JobFilter(status=(Status.RUNNING,)), 100, None))
        held = Counter((job.queue, job.concurrency_key) for job in page.items if job.concurrency_key)
        most = dict.fromkeys(held, 2)
        assert held <= Counter(most)

    @invariant()
    def a_key_has_one_live_job_at_most(self) -> None:
        page = self.run(self.store.operator.list(JobFilter(status=tuple(LIVE)), 100, None))
        keys = Counter((job.queue, job.idempotency_key) for job in page.items if job.idempotency_key)
        assert all(count == 1 for count in keys.values())
