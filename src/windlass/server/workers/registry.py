"""REST workers: the tokens that opened them, their leases, and the end of silent ones.

The store cannot watch the process of a REST worker, so only the time shows on every store that it is alive. Its lease
in the store has twice its length. A server ends it after one length of silence by the server's clock, counted at most
from the server's start. So after a time without any server every REST worker has one more length.
"""

import asyncio
import logging
import os
from collections.abc import Iterable, Sequence

import msgspec

from windlass.client.app import App
from windlass.coordinator.duties import report_rescued
from windlass.core.ids import JobId, new_runner_id, runner_id
from windlass.core.moments import DAY, SECOND, Micros
from windlass.core.names import check_name
from windlass.errors import LeaseLost, StoreUnavailable
from windlass.observe.logs import log_event
from windlass.server.operation import Caller
from windlass.server.workers.meters import RestMeters
from windlass.server.workers.rest_worker import PREFIX, RestWorker, WorkerNotFound
from windlass.server.workers.silence import Silence
from windlass.store.clock import since_boot
from windlass.store.contract import Store
from windlass.store.records import LeaseRequest, RunnerEnd, WorkerInfo
from windlass.version import __version__

KIND = "rest-worker"
ENDED = "ended-rest-worker"
LEASE: Micros = 30 * SECOND
"""The silence after which a worker counts as dead."""
BEAT_SECONDS = 5.0
"""How often a server renews the leases of workers that made a call, or wait in a claim."""
CLEAN_EVERY = 720
"""Rounds between two looks for records of workers that are gone."""
MAX_CLEANED = 1_000
MAX_RESCUED = 100
_log = logging.getLogger("windlass.server")


class _Record(msgspec.Struct, frozen=True):
    owner: str

    @property
    def text(self) -> str:
        return msgspec.json.encode(self).decode()


class RestWorkers:
    """The REST workers of one server."""

    def __init__(self, app: App, *, lease: Micros = LEASE) -> None:
        self._app = app
        self.lease = lease
        self.meters = RestMeters()
        self._id = new_runner_id(os.urandom)
        self._known: dict[str, RestWorker] = {}
        self._silence = Silence()
        self._keeping: asyncio.Task[None] | None = None
        self._rounds = 0

    async def open(self, caller: Caller, id_: str, info: WorkerInfo) -> RestWorker:
        """The worker, which gets a lease at its first claim. Raises LeaseLost if it has ended."""
        worker = await self._find(caller, id_)
        if worker is None:
            worker = await self._add(caller, id_, info)
        elif worker.info is None or not _is_same(worker.info, info):
            await (await self._app._ready()).workers.beat(info)
        worker = self._hear(worker)
        worker.info = info
        return worker

    async def get(self, caller: Caller, id_: str) -> RestWorker:
        """A worker that this caller opened; raises WorkerNotFound, or LeaseLost if it has ended."""
        worker = await self._find(caller, check_name(id_, "worker"))
        if worker is None:
            raise WorkerNotFound(id_)
        return self._hear(worker)

    async def renew(self, worker: RestWorker) -> None:
        """Renew its lease now. Raises LeaseLost."""
        store = await self._app._ready()
        renewal = await store.leases.renew(self._id, (worker.runner,), 2 * self.lease)
        if renewal.lost:
            await self.lose(worker)
            raise LeaseLost(worker.runner)

    async def end(self, caller: Caller, id_: str, crashed: frozenset[tuple[JobId, int]] = frozenset()) -> None:
        """Requeue its jobs and end its lease; idempotent. `crashed` ran when its process died."""
        try:
            worker = await self.get(caller, id_)
        except LeaseLost:
            return
        await self._end(worker, RunnerEnd(runner=worker.runner, started=crashed, crashed=bool(crashed)))

    async def lose(self, worker: RestWorker) -> None:
        """End a lease that the store does not renew, and rescue its jobs; `rescue` may grant it a grace instead."""
        await self._end(worker, RunnerEnd(runner=worker.runner, started=frozenset(), crashed=True, expired=True))

    async def _end(self, worker: RestWorker, ended: RunnerEnd) -> None:
        store = await self._app._ready()
        await report_rescued(store, await store.leases.end(ended), log_event)
        await store.workers.unregister(PREFIX + worker.id)
        await self._drop(store, worker)

    async def stop(self) -> None:
        """Stop the renewals; leases last for their time, and another server may renew them."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
            store = await self._app._ready()
            await self.meters.flush(store.stats)

    def _hear(self, worker: RestWorker) -> RestWorker:
        """Note a call of a worker; concurrent calls share one record of it."""
        worker = self._known.setdefault(worker.id, worker)
        worker.heard_at = since_boot()
        if self._keeping is None or self._keeping.done():
            self._silence.begin()
            self._keeping = asyncio.create_task(self._keep())
        return worker

    async def _find(self, caller: Caller, id_: str) -> RestWorker | None:
        worker = self._known.get(id_)
        if worker is None:
            documents = (await self._app._ready()).documents
            (found,) = await documents.get(KIND, [id_])
            if found is None:
                await self._check_ended(caller, id_)
                return None
            worker = RestWorker(id_, msgspec.json.decode(found.data, type=_Record).owner)
        if worker.owner != caller.id:
            raise WorkerNotFound(id_)
        return worker

    async def _check_ended(self, caller: Caller, id_: str) -> None:
        (ended,) = await (await self._app._ready()).documents.get(ENDED, [id_])
        if ended is None:
            return
        if msgspec.json.decode(ended.data, type=_Record).owner != caller.id:
            raise WorkerNotFound(id_)
        raise LeaseLost(runner_id(PREFIX + id_, 1))

    async def _add(self, caller: Caller, id_: str, info: WorkerInfo) -> RestWorker:
        store, worker = await self._app._ready(), RestWorker(id_, caller.id)
        existing = await store.documents.add(KIND, id_, _Record(caller.id).text)
        if existing is not None and msgspec.json.decode(existing.data, type=_Record).owner != caller.id:
            raise WorkerNotFound(id_)
        request = LeaseRequest(runner=worker.runner, worker=PREFIX + id_, length=2 * self.lease)
        await store.leases.open(request)
        await store.workers.beat(info)
        return worker

    async def _drop(self, store: Store, worker: RestWorker) -> None:
        """Forget a worker without a lease. A record keeps its id from being used again for a day."""
        self._known.pop(worker.id, None)
        self._silence.forget(worker.id)
        await store.documents.add(ENDED, worker.id, _Record(worker.owner).text, DAY)
        await store.documents.delete(KIND, [worker.id])

    async def _keep(self) -> None:
        """Run rounds while this server runs, also after errors: without them every lease would lapse."""
        while True:
            await asyncio.sleep(min(BEAT_SECONDS, self.lease / SECOND / 6))
            try:
                await self.round()
            except StoreUnavailable:
                # Beats could not be stored meanwhile: silence does not mean that a worker is dead.
                self._silence.restart()
            except Exception:
                _log.exception("renewing the leases of REST workers failed")
                self._silence.restart()

    async def round(self) -> None:
        """Renew the leases of workers that made a call; end workers that were silent for a whole lease."""
        store, now = await self._app._ready(), since_boot()
        heard = [each for each in self._known.values() if each.polls or each.heard_at >= each.signed_at]
        if heard:
            renewal = await store.leases.renew(self._id, tuple(each.runner for each in heard), 2 * self.lease)
            lost = frozenset(renewal.lost)
            for worker in [each for each in heard if each.runner in lost]:
                await self.lose(worker)
            kept = [each for each in heard if each.runner not in lost]
            await self._adopt(store, [each for each in kept if each.info is None])
            infos = [each.info for each in kept if each.info is not None]
            if infos:
                await store.workers.beat(*infos)
            for worker in kept:
                worker.signed_at = now
        await self._end_silent(store, await store.workers.list())
        # Also of workers that no server has observed for one length: there may be no coordinator.
        await report_rescued(store, await store.leases.rescue(MAX_RESCUED), log_event)
        await self.meters.flush(store.stats)
        self._rounds += 1
        if self._rounds % CLEAN_EVERY == 0:
            await self._clean(store)

    async def _adopt(self, store: Store, workers: Sequence[RestWorker]) -> None:
        """Register workers that another server opened: that server may have stopped."""
        if not workers:
            return
        registered = {each.id: each for each in await store.workers.list()}
        for worker in workers:
            worker.info = registered.get(PREFIX + worker.id) or _info(worker.id)

    async def _end_silent(self, store: Store, workers: Iterable[WorkerInfo]) -> None:
        now = since_boot()
        beats = {each.id.removeprefix(PREFIX): each.beat_at for each in workers if each.rest}
        # One that is not registered has ended elsewhere, or was silent for longer than the registry keeps it.
        for id_ in self._silence.silent(beats, now, self.lease):
            if id_ in beats or (await store.documents.get(KIND, [id_]))[0] is not None:
                await self._end_one(store, id_)
            self._silence.forget(id_)
        for worker in list(self._known.values()):
            if worker.id not in beats and not worker.polls and now - worker.heard_at > self.lease:
                self._known.pop(worker.id)  # ended by another server

    async def _end_one(self, store: Store, id_: str) -> None:
        """End a silent worker: the only job that it held has crashed; of several, each is a suspect."""
        runner = runner_id(PREFIX + id_, 1)
        held = await store.jobs.held(runner)
        (found,) = await store.documents.get(KIND, [id_])
        owner = "" if found is None else msgspec.json.decode(found.data, type=_Record).owner
        started = frozenset((job.id, job.attempt) for job in held)
        await self._end(RestWorker(id_, owner), RunnerEnd(runner=runner, started=started, crashed=True))

    async def _clean(self, store: Store) -> None:
        """Delete records of workers that ended while no server ran."""
        live = {each.id for each in await store.workers.list()}
        records = await store.documents.list(KIND, MAX_CLEANED)
        for each in records:
            if PREFIX + each.id not in live and each.id not in self._known:
                await self._drop(store, RestWorker(each.id, msgspec.json.decode(each.data, type=_Record).owner))


def _info(id_: str) -> WorkerInfo:
    """The record of a worker that is not registered; its next claim completes it."""
    known = {"host": "", "pid": 0, "version": __version__, "queues": (), "types": ()}
    return msgspec.convert({"id": PREFIX + id_, **known, "processes": 1, "slots": 1, "rest": True}, WorkerInfo)


def _is_same(known: WorkerInfo, info: WorkerInfo) -> bool:
    return (known.queues, known.types, known.slots) == (info.queues, info.types, info.slots)
