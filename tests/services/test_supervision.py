"""The supervisor's parts: leases that are kept or replaced, requests that are passed on, jobs that are freed."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.services.parts import Listener, table_of
from tests.support.clock import ManualClock
from tests.support.seed import LEASE, claim_one, enqueue_one, let_lapse, look, status_of
from windlass import Status
from windlass.errors import StoreUnavailable
from windlass.store.clock import since_boot
from windlass.store.contract import Store
from windlass.worker.channel import Cancel, Hello, LeaseGranted
from windlass.worker.config import WorkerConfig
from windlass.worker.stacks import Stacks
from windlass.worker.supervisor.beat import LeaseKeeper, Registration, Reports
from windlass.worker.supervisor.runner_process import RunnerProcess
from windlass.worker.supervisor.state import SupervisorState
from windlass.worker.supervisor.watch import Watch


class Line:
    """The supervisor's end of a line: what it says is kept."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, message: Any) -> None:
        self.sent.append(message)


class Post:
    """A worker with one runner, of which there is only the table and the line."""

    def __init__(self, store: Store, table: Any) -> None:
        self.store = store
        self.listener = Listener()
        config = WorkerConfig(app="x:app", lease=LEASE, concurrency=7)
        children: set[RunnerProcess] = set()
        self.state = SupervisorState("w1", config, self.listener, children)
        self.state.set_store(store, Hello("x", ("default", "mail"), ("t",)))
        self.registration = Registration(self.state)
        self.leases = LeaseKeeper(self.state)
        self.reports = Reports(self.state, self.registration)
        self.watch = Watch(self.state, children)
        self.line = Line()
        line: Any = self.line
        process: Any = SimpleNamespace(pid=4242, returncode=None)
        self.child = RunnerProcess(process, line, table, Stacks.create(), "mark")
        children.add(self.child)

    @property
    def runner(self) -> str:
        assert self.child.runner is not None
        return self.child.runner


@pytest.fixture
def post(store: Store) -> Iterator[Post]:
    """A worker at its post."""
    with table_of(valid=False) as table:
        yield Post(store, table)


async def test_a_runner_is_told_to_go_when_it_has_a_lease(post: Post) -> None:
    before = since_boot()
    await post.leases.open(post.child)
    assert post.line.sent == [LeaseGranted(post.runner, 1)]
    assert before + LEASE <= post.child.table.valid_until <= since_boot() + LEASE
    await enqueue_one(post.store)
    assert (await claim_one(post.store, post.runner)).attempt == 1
    assert post.listener.names == ["RunnerStarted"]


async def test_a_beat_extends_what_holds(post: Post) -> None:
    await post.leases.open(post.child)
    post.child.table.valid_until = 5
    await post.leases._beat()
    assert post.child.table.valid_until > since_boot()
    assert post.leases.current()


async def refuse(*_: object) -> None:
    raise StoreUnavailable("locked")


async def test_a_beat_touches_nothing_but_leases(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else is told to the store may have to wait for a stranger's lock, or fail."""
    await post.leases.open(post.child)
    for role, verb in ((post.store.workers, "beat"), (post.store.jobs, "note"), (post.store.leases, "cancels")):
        monkeypatch.setattr(role, verb, refuse)
    post.child.table.valid_until = 5
    await post.leases._beat()
    assert post.child.table.valid_until > since_boot()


async def test_a_report_registers_the_worker(post: Post) -> None:
    await post.leases.open(post.child)
    await post.reports._report()
    (worker,) = await post.store.workers.list()
    assert (worker.id, worker.slots, worker.queues, worker.types) == ("w1", 7, ("default", "mail"), ("t",))


async def test_starts_are_noted_between_beats(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    await post.leases.open(post.child)
    await post.reports._report()
    id_ = await enqueue_one(post.store)
    job = await claim_one(post.store, post.runner)
    index = post.child.table.prefetch(id_, job.attempt, 1_000_000, 1_000_000 + 2_000_000)
    post.child.table.start(index, 1_000_500, 0)
    monkeypatch.setattr(post.store.workers, "beat", refuse)
    await post.reports._report()
    assert (await look(post.store, id_)).started_at is not None


async def test_the_id_of_a_runner_names_its_worker(post: Post) -> None:
    await post.leases.open(post.child)
    first = post.runner
    await post.leases.open(post.child)
    assert (first, post.runner) == ("w1-1", "w1-2")


async def test_a_lease_that_is_lost_is_replaced_under_a_new_id(post: Post, clock: ManualClock) -> None:
    await post.leases.open(post.child)
    old = post.runner
    await let_lapse(post.store, clock)
    await post.store.leases.rescue(10)
    await post.leases._beat()
    assert post.runner != old
    assert post.line.sent == [LeaseGranted(old, 1), LeaseGranted(post.runner, 2)]
    assert post.listener.names == ["RunnerStarted", "LeaseExpired", "RunnerStarted"]
    assert post.child.table.valid_until > since_boot()


async def test_a_loss_that_both_sides_notice_is_dealt_with_once(post: Post) -> None:
    await post.leases.open(post.child)
    old = post.runner
    await post.leases.replace(post.child, old)
    await post.leases.replace(post.child, old)
    assert [message.lease for message in post.line.sent] == [1, 2]


async def test_a_job_that_runs_for_a_while_has_its_start_noted_once(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    await post.leases.open(post.child)
    id_ = await enqueue_one(post.store)
    job = await claim_one(post.store, post.runner)
    index = post.child.table.prefetch(id_, job.attempt, 1_000_000, 1_000_000 + 2_000_000)
    post.child.table.start(index, 1_000_500, 0)
    with monkeypatch.context() as patch:
        patch.setattr(post.store.jobs, "note", refuse)
        with pytest.raises(StoreUnavailable):
            await post.reports._report()
    await post.reports._report()
    found = await look(post.store, id_)
    assert found.started_at is not None
    assert found.claimed_at is not None
    assert (found.started_at - found.claimed_at).microseconds == 500
    assert post.child.noted == {(id_, 1)}


async def test_a_request_to_stop_is_passed_on_once(post: Post) -> None:
    await post.leases.open(post.child)
    id_ = await enqueue_one(post.store)
    job = await claim_one(post.store, post.runner)
    post.child.table.prefetch(id_, job.attempt, 1_000_000, 1_000_000 + 2_000_000)
    await post.watch._forward_cancels()
    assert post.line.sent[1:] == []
    await post.store.operator.cancel([id_], "enough")
    await post.watch._forward_cancels()
    await post.watch._forward_cancels()
    assert post.line.sent[1:] == [Cancel(id_, 1)]


@pytest.mark.parametrize(("state", "status"), [("prefetched", Status.PENDING), ("started", Status.RUNNING)])
async def test_a_prefetched_job_behind_a_stuck_loop_is_freed_and_a_started_one_is_not(
    post: Post, state: str, status: Status
) -> None:
    await post.leases.open(post.child)
    id_ = await enqueue_one(post.store)
    job = await claim_one(post.store, post.runner)
    index = post.child.table.prefetch(id_, job.attempt, 0, since_boot() - 1)
    if state == "started":
        post.child.table.start(index, since_boot(), 0)
    await post.watch._free_stuck(post.child)
    assert await status_of(post.store, id_) is status
    if state == "prefetched":
        assert post.child.table.start(index, since_boot(), 0) is False
        assert (await look(post.store, id_)).requeues == 1


async def test_a_prefetched_job_that_is_not_late_is_left_alone(post: Post) -> None:
    await post.leases.open(post.child)
    id_ = await enqueue_one(post.store)
    job = await claim_one(post.store, post.runner)
    index = post.child.table.prefetch(id_, job.attempt, 0, since_boot() + LEASE)
    await post.watch._free_stuck(post.child)
    assert post.child.table.start(index, since_boot(), 0) is True
    assert await status_of(post.store, id_) is Status.RUNNING


async def test_leases_that_were_not_renewed_for_long_are_not_current(post: Post) -> None:
    post.leases.beat_at = since_boot()
    assert post.leases.current()
    post.leases.beat_at = since_boot() - 2 * LEASE
    assert not post.leases.current()


@pytest.mark.parametrize(
    ("code", "words"),
    [(None, "still running"), (0, "exit code 0"), (-9, "killed by SIGKILL"), (-35, "killed by signal 35")],
)
async def test_an_ending_is_described_in_words(post: Post, code: int | None, words: str) -> None:
    ended: Any = SimpleNamespace(pid=1, returncode=code)
    post.child.process = ended
    assert post.child.ending() == words
