"""Calls of scripts and commands within a deadline, the identity of the store, and the creation of queues."""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from secrets import token_hex
from typing import Any

from redis.exceptions import ResponseError

from windlass.core.flow.queue import Queue
from windlass.errors import StoreUnavailable
from windlass.store.redis.connection.address import Kind
from windlass.store.redis.connection.driver import Word
from windlass.store.redis.connection.errors import DRIVER_ERRORS, QueueErrors, is_from_script, is_lost, translate
from windlass.store.redis.connection.failpoints import as_verb
from windlass.store.redis.connection.inspection import inspect_servers
from windlass.store.redis.connection.server import Server
from windlass.store.redis.connection.server_watch import emptied, queues_lost, too_new
from windlass.store.redis.connection.wire import Call
from windlass.store.redis.records.migrate import VERSION, VERSION_FIELDS, bring_up, read_version
from windlass.store.redis.records.queue_settings import kept_settings
from windlass.store.redis.scripts.loader import READS, REFUSED, Script

MAX_INSPECTION = 2.0
MAX_CALL = 20.0
NEW_QUEUE, EMPTIED = "WINDLASS_NEW_QUEUE", "WINDLASS_EMPTIED"


class Access:
    """Calls to the server, each with a deadline."""

    def __init__(self, server: Server, deadline: float | None, *, patient: bool = True) -> None:
        """`patient`: wait for an absent server of a cluster; periodic work does not."""
        self.server = server
        self.seconds = deadline or MAX_CALL
        self.changed = False
        """Whether a call through this access changed anything, or may have: see roles.py."""
        self.patient = patient

    @property
    def clustered(self) -> bool:
        """Whether queues are on several servers, each of which may be unreachable alone."""
        return self.server.address.kind is Kind.CLUSTER

    def background(self, seconds: float | None = None) -> "Access":
        """The same for periodic work on all queues: an unreachable queue does not delay the others."""
        if not self.clustered:
            return self
        return Access(self.server, min(self.seconds, seconds or self.seconds), patient=False)

    async def call(self, name: str, queue: str, request: Any, *blobs: bytes) -> Any:
        """Call a script for one queue. As its header says, a missing queue is created or the reply is None."""
        await self.ensure_open()
        call = self.server.to_call(self.server.script(name), queue, request, blobs)
        # Read before the call: another thread may create the queue meanwhile.
        known = self.server.known_queues.intersection([queue])
        try:
            reply = await self.server.wire.call(call, self.seconds, patient=self.patient)
        except TimeoutError as error:
            raise self._timeout() from error
        except DRIVER_ERRORS as error:
            if not _has_code(error, NEW_QUEUE):
                raise self._translate(error) from error
        else:
            self.server.known_queues.add(queue)
            self.changed = self.changed or call.script.writes
            return reply
        await self._check_missing([queue], known)
        if not call.script.creates_queue:
            return None
        await self.open_queues([queue])
        return await self._one(call)

    async def call_queues(self, name: str, requests: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        """Call a script for several queues, each with its request and blobs. Raises the first error."""
        replies = await self._replies(name, requests)
        for reply in replies.values():
            if isinstance(reply, Exception):
                raise self._translate(reply, among=replies.values()) from reply
        return replies

    async def call_each(self, name: str, requests: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        """The same, but a failed call does not affect the others: its error stands instead of its reply."""
        replies = await self._replies(name, requests)
        return {
            queue: self._translate(each) if isinstance(each, Exception) else each for queue, each in replies.items()
        }

    async def call_reachable(
        self, name: str, requests: Mapping[str, tuple[Any, ...]]
    ) -> tuple[dict[str, Any], QueueErrors]:
        """The replies of reachable queues, and the errors of the others; with one server, the error is raised."""
        if not self.clustered:
            return await self.call_queues(name, requests), QueueErrors()
        replies = await self.call_each(name, requests)
        troubles = QueueErrors(reply for reply in replies.values() if isinstance(reply, StoreUnavailable))
        return {q: reply for q, reply in replies.items() if not isinstance(reply, StoreUnavailable)}, troubles

    async def _replies(self, name: str, requests: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        if not requests:
            return {}
        await self.ensure_open()
        wanted = self.server.script(name)
        known = self.server.known_queues.intersection(requests)
        replies = await self._send(wanted, requests)
        new = [queue for queue, reply in replies.items() if _has_code(reply, NEW_QUEUE)]
        try:
            await self._check_missing(new, known)
            if new and not wanted.creates_queue:
                replies = {queue: reply for queue, reply in replies.items() if queue not in new}
            elif new:
                await self.open_queues(new)
                replies |= await self._send(wanted, {queue: requests[queue] for queue in new})
        except StoreUnavailable as error:
            # Whether the calls to other queues took effect is no longer known.
            done = wanted.writes and any(_may_be_done(reply) for reply in replies.values())
            error.maybe_done = error.maybe_done or done
            raise
        if wanted.needs_queue:
            self.server.known_queues.update(
                queue for queue, reply in replies.items() if not isinstance(reply, Exception)
            )
        return replies

    async def call_global(self, name: str, request: Any, *blobs: bytes) -> Any:
        """Call a script on the global keys."""
        await self.ensure_open()
        return await self._one(self.server.to_call(self.server.script(name), "", request, blobs))

    async def command(self, name: str, key: str, *words: Word) -> Any:
        """Send a plain command for a global key; `key` is its name in keys.py."""
        await self.ensure_open()
        return await self._command(name, *self.server.keys.global_keys((key,)), *words)

    async def queue_names(self) -> list[str]:
        """The names of all queues."""
        return sorted(name.decode() for name in await self.command("SMEMBERS", "queues"))

    async def now(self) -> int:
        """The store's clock."""
        if self.server.clock is not None:
            return self.server.clock.wall()
        seconds, micros = await self._command("TIME")
        return int(seconds) * 1_000_000 + int(micros)

    async def open_queues(self, names: Iterable[str]) -> None:
        """Create queues. Their names are stored first, so that no queue has jobs and no name."""
        with as_verb(self.server.failpoint_wire, "open_queue"):
            await self._open_queues(list(names))

    async def _open_queues(self, names: Sequence[str]) -> None:
        # By a script: at its memory limit a server refuses a plain SADD, and so every call that would free memory.
        await self.call_global("add_queue_names", ("queues", list(names)))
        fresh = {name: kept_settings(Queue(name=name)).items() for name in names}
        requests = {name: ([each for pair in pairs for each in pair],) for name, pairs in fresh.items()}
        for reply in (await self._send(self.server.script("open_queue"), requests)).values():
            if isinstance(reply, Exception):
                raise self._translate(reply) from reply

    async def _check_missing(self, queues: Sequence[str], known: set[str]) -> None:
        """Raise if the store was emptied, or a missing queue is lost; `known` are those that existed before the call.

        In a cluster one server can lose its keys alone. That is reported once.
        """
        if not queues:
            return
        if await self.command("HGET", "meta", "store") != (self.server.store_id or "").encode():
            raise emptied(self.server.shown)
        lost = sorted(known.intersection(queues))
        self.server.known_queues.difference_update(lost)
        if lost:
            raise queues_lost(self.server.shown, lost)

    async def ensure_open(self) -> None:
        """Read the id of the store, or create the store."""
        server = self.server
        if server.closed:
            raise StoreUnavailable(f"{server.shown}: this store is closed", lasting=True)
        if server.watch.is_due():
            await self._inspect()
        server.watch.check()
        if server.store_id is None:
            try:
                with as_verb(server.failpoint_wire, "migrate"):
                    await self._identify()
            except StoreUnavailable as error:
                error.maybe_done = False  # the call itself was not sent
                raise

    async def _identify(self) -> None:
        server = self.server
        (key,) = server.keys.global_keys(("meta",))
        store_id, *version = await self._command("HMGET", key, "store", *VERSION_FIELDS)
        if store_id is None:  # else write nothing, so that a full server can be read
            await self._command("HSETNX", key, "store", token_hex(8))
            store_id, *version = await self._command("HMGET", key, "store", *VERSION_FIELDS)
        found = read_version(*version)
        if not found.fits():
            raise too_new(server.shown, found.number, VERSION)
        server.store_id = store_id.decode()
        if found.number < VERSION:
            try:
                server.applied += await bring_up(self, found.number)
            except BaseException:
                server.store_id = None  # the next call tries again
                raise

    async def _inspect(self) -> None:
        """Inspect every server, and check that the store is still the same."""
        server = self.server
        known = server.store_id  # another thread may create the store meanwhile
        try:
            seen = await inspect_servers(server, min(self.seconds, MAX_INSPECTION))
        except DRIVER_ERRORS as error:
            raise self._translate(error, unsent=True) from error
        if (why := seen.rights.why_refused(server.keys.prefix)) is not None:
            server.script_stopped = True
            server.watch.update(seen.infos, StoreUnavailable(f"{server.shown}: {why}", lasting=True))
            return
        server.watch.log_once(seen.rights.warning(server.keys.prefix))
        refusal: StoreUnavailable | None = None
        if seen.store is not None:
            store_id, version = seen.store
            if known is not None and store_id != known.encode():
                refusal = emptied(server.shown)
            elif not version.fits():
                refusal = too_new(server.shown, version.number, VERSION)
        server.watch.update(seen.infos, refusal)
        if seen.store and refusal is None and server.store_id is not None and server.address.kind is not Kind.SERVER:
            await self._restore_queue_names()

    async def _restore_queue_names(self) -> None:
        """Store the names of queues again: a failover may have lost a name whose queue is on another server."""
        names = self.server.asked_queues - {""}
        if names:
            await self._one(
                self.server.to_call(self.server.script("add_queue_names"), "", ("queues", sorted(names)), ())
            )

    async def _send(self, wanted: Script, requests: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        calls = [self.server.to_call(wanted, queue, request, blobs) for queue, (request, *blobs) in requests.items()]
        replies = await self._translated(self.server.wire.calls(calls, self.seconds, patient=self.patient))
        if wanted.writes and any(_may_be_done(reply) for reply in replies):
            self.changed = True
        return dict(zip(requests, replies, strict=True))

    async def _one(self, call: Call) -> Any:
        reply = await self._translated(self.server.wire.call(call, self.seconds, patient=self.patient))
        self.changed = self.changed or call.script.writes
        return reply

    async def _command(self, *words: Word) -> Any:
        sent = self.server.wire.command(*words, seconds=self.seconds, patient=self.patient)
        reply = await self._translated(sent)
        self.changed = self.changed or words[0] not in READS
        return reply

    async def _translated(self, sent: Awaitable[Any]) -> Any:
        """The reply; errors of the driver are translated."""
        try:
            return await sent
        except TimeoutError as error:
            raise self._timeout() from error
        except DRIVER_ERRORS as error:
            raise self._translate(error) from error

    def _timeout(self) -> StoreUnavailable:
        return StoreUnavailable(f"{self.server.shown}: no answer within {self.seconds:g} s", maybe_done=True)

    def _translate(self, error: Exception, among: Iterable[Any] = (), *, unsent: bool = False) -> StoreUnavailable:
        """Our error for one of the driver; `among`: all replies of the call; `unsent`: it changed nothing."""
        if _has_code(error, EMPTIED):
            return emptied(self.server.shown)
        translated = translate(error, self.server.shown)
        if is_from_script(error) and translated.maybe_done:
            self.server.watch.check_now()
            self.server.script_stopped = True
        elif is_lost(error) or is_from_script(error) or _has_code(error, REFUSED):
            self.server.watch.check_soon()
        done = any(_may_be_done(reply) for reply in among)
        translated.maybe_done = (translated.maybe_done or done) and not unsent
        return translated


def _may_be_done(reply: Any) -> bool:
    return not isinstance(reply, Exception) or translate(reply, "").maybe_done


def _has_code(reply: Any, code: str) -> bool:
    return isinstance(reply, ResponseError) and str(reply).startswith(code)
