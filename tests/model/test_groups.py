"""Groups against a small reference, by random walks: members end, are cancelled, retried and deleted as it comes."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from windlass import App, Cancel, Context, Dead, Results, Snooze, Status
from windlass.core.groups.ids import Role, watcher_id
from windlass.core.groups.need import needed
from windlass.core.status import FINISHED
from windlass.testing import run_all

MEMBERS = 6
LOST = (Status.DEAD, Status.CANCELLED)
indexes = st.integers(0, MEMBERS - 1)


class Walk(RuleBasedStateMachine):
    """One group; its members wait in a queue of their own until one is told how to end."""

    @initialize(need=st.sampled_from([None, 0, 3, 5, "50%", "90%"]), is_open=st.booleans(), cancels=st.booleans())
    def begin(self, need: int | str | None, is_open: bool, cancels: bool) -> None:
        self.app = App.testing()
        self.need, self.outcome, self.ran = need, "complete", dict[str, list[Any]]()
        self.retried = self.cancelled = False
        self.ended: Status | None = None
        """How the group ended; an end is final here, for no flow is retried."""
        self.last: dict[int, Status] = {}
        """How deleted members had ended."""
        self.added = 0
        self._make_tasks()
        options: dict[str, Any] = {} if need is None else {"need": need}
        callbacks = {"then": self.then, "on_dead": self.on_dead, "always": self.always}
        self.opened = self.app.group("g", rest="cancel" if cancels else "finish", **callbacks, **options)
        for index in range(MEMBERS):
            self.opened.add(self.member.job(index))
        self.group = self.opened.id
        self.sealed = not is_open
        if self.sealed:
            self.opened.seal()

    def _make_tasks(self) -> None:
        walk = self

        @self.app.task(queue="members", max_attempts=1)
        def member(ctx: Context, number: int) -> int:
            match walk.outcome:
                case "die":
                    raise Dead("hopeless")
                case "cancel":
                    raise Cancel("not needed")
                case "snooze":
                    raise Snooze(3600)
                case "add":
                    ctx.group.add(member.using(delay=3600).job(1000 + walk.added))
                    walk.added += 1
            return number

        def note(name: str) -> Any:
            @self.app.task(type=name, queue="watch")
            def callback(parts: Results[int]) -> None:
                walk.ran.setdefault(name, []).append(len(parts))

            return callback

        self.member = member
        self.then, self.on_dead, self.always = note("then"), note("on_dead"), note("always")

    @rule(index=indexes, outcome=st.sampled_from(["complete", "complete", "die", "cancel", "snooze", "add"]))
    def end(self, index: int, outcome: str) -> None:
        """One member runs; the others are late."""
        ids = self._live()
        if not ids:
            return
        chosen = ids[index % len(ids)]
        self.outcome = outcome
        self.app.queues.pause("members")
        self.app.jobs.run_now(chosen)
        for other in ids:
            if other != chosen:
                self.app.jobs.change(other, delay=3600)
        self.app.queues.resume("members")
        run_all(self.app, queues=["members"])

    @rule(index=indexes)
    def cancel(self, index: int) -> None:
        ids = self._live()
        if ids:
            self.app.jobs.cancel(ids[index % len(ids)])

    @rule(index=indexes)
    def retry(self, index: int) -> None:
        """A member that has ended is live again."""
        if index not in self.last and self._members()[index] in FINISHED:
            self.app.jobs.retry(self.opened.handle.member(index))
            self.app.jobs.change(self.opened.handle.member(index), delay=3600)
            self.retried = True

    @rule(index=indexes)
    def delete(self, index: int) -> None:
        found = self._members().get(index)
        if found in FINISHED and index not in self.last:
            self.app.jobs.delete(self.opened.handle.member(index))
            self.last[index] = found

    @precondition(lambda self: not self.sealed)
    @rule()
    def seal(self) -> None:
        self.opened.seal()
        self.sealed = True

    @rule()
    def cancel_flow(self) -> None:
        if self.ended is None:
            self.app.flows.cancel("g")
            self.cancelled, self.ended = True, Status.CANCELLED

    @rule()
    def look(self) -> None:
        """Every job that watches the group looks, as it does when it is woken."""
        for role in Role:
            found = self.app.jobs.get(watcher_id(self.group, role))
            if not found.finished:
                self.app.jobs.run_now(found)
        before = self._members(), self._added()
        run_all(self.app, queues=["watch"])
        self._check(*before)

    def _check(self, members: dict[int, Status], added: list[Status]) -> None:
        statuses = [*members.values(), *added]
        lost, live = sum(each in LOST for each in statuses), sum(each not in FINISHED for each in statuses)
        allowed = len(statuses) - needed(self.need, len(statuses))
        status = self.app.jobs.get(self.group).status
        if self.ended is None:
            if status is Status.COMPLETED:
                assert self.sealed
                assert (live, lost <= allowed) == (0, True)
                self.ended = status
            elif status is Status.CANCELLED:
                assert lost > allowed
                self.ended = status
            else:
                assert live or not self.sealed, "it waits in vain"
                is_certain = self.need is None or (self.sealed and not added)
                assert lost <= allowed or self.retried or not is_certain, "it should be lost"
        if not live and self.sealed:
            assert self.app.jobs.get(watcher_id(self.group, Role.ALWAYS)).status is Status.COMPLETED

    def _members(self) -> dict[int, Status]:
        found = self.app._portal().run(self._read([self.opened.handle.member(i).id for i in range(MEMBERS)]))
        return {i: self.last[i] if i in self.last else found[i] for i in range(MEMBERS)}

    async def _read(self, ids: list[str]) -> list[Any]:
        store = await self.app._ready()
        return [None if job is None else job.status for job in await store.operator.get(ids)]

    def _added(self) -> list[Status]:
        jobs = self.app.jobs.list(queue="members", limit=100)
        mine = {self.opened.handle.member(i).id for i in range(MEMBERS)}
        return [job.status for job in jobs if job.id not in mine]

    def _live(self) -> list[str]:
        return sorted(job.id for job in self.app.jobs.list(queue="members", limit=100) if not job.finished)

    @invariant()
    def each_callback_runs_once_and_as_the_group_ended(self) -> None:
        assert all(len(runs) == 1 for runs in self.ran.values())
        if "then" in self.ran:
            assert self.ended in (None, Status.COMPLETED)
        if "on_dead" in self.ran:
            assert not self.cancelled
            assert self.app.jobs.get(self.group).status is Status.CANCELLED
        assert not {"then", "on_dead"} <= self.ran.keys()

    def teardown(self) -> None:
        if hasattr(self, "app"):
            self.app.close()


def test_a_group_agrees_with_the_reference() -> None:
    run_state_machine_as_test(Walk, settings=settings(max_examples=25, stateful_step_count=20, deadline=None))
