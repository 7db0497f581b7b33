"""The ways to the server: which store it is, which queues it has, and how a script is asked, in how much time."""

from collections.abc import Iterable, Mapping, Sequence
from secrets import token_hex
from typing import Any

from redis.exceptions import ResponseError

from windlass.core.queue import Queue
from windlass.errors import StoreUnavailable
from windlass.store.redis.address import Kind
from windlass.store.redis.failpoints import naming
from windlass.store.redis.migrate import STEPS, bring_up
from windlass.store.redis.packing import Word
from windlass.store.redis.script import Script
from windlass.store.redis.server import Server
from windlass.store.redis.settings import kept_settings
from windlass.store.redis.trouble import TROUBLE, is_lost, translate
from windlass.store.redis.watch import emptied, gone, too_new
from windlass.store.redis.wire import Call

VERSION = len(STEPS)
"""Of the key map; one that is higher is not ours to touch."""
LONGEST_LOOK = 2.0
LONGEST_CALL = 20.0
NEW_QUEUE, EMPTIED = "WINDLASS_NEW_QUEUE", "WINDLASS_EMPTIED"


class Access:
    """The server, as one user of the store sees it: with a deadline of its own."""

    def __init__(self, server: Server, deadline: float | None) -> None:
        self.server = server
        self.seconds = deadline or LONGEST_CALL

    async def call(self, name: str, queue: str, request: Any, *blobs: bytes) -> Any:
        """One script, for one queue. One that is new is made, or there is no answer: as the script says."""
        await self.be_known()
        call = self.server.to_call(self.server.script(name), queue, request, blobs)
        stood = self.server.there.intersection(
            [queue]
        )  # as yet: another thread may make it while this one is told no
        try:
            reply = await self.server.wire.call(call, self.seconds)
        except TimeoutError as error:
            raise self._silence() from error
        except TROUBLE as error:
            if not _is(error, NEW_QUEUE):
                raise self._trouble(error) from error
        else:
            self.server.there.add(queue)
            return reply
        await self._check_new([queue], stood)
        if not call.script.makes:
            return None
        await self.open_queues([queue])
        return await self._one(call)

    async def calls(self, name: str, requests: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        """The same script for several queues: the request and the blobs of each. The first error is raised.

        Queues that are new are made, or left out: as the script says.
        """
        replies = await self._answers(name, requests)
        for reply in replies.values():
            if isinstance(reply, Exception):
                raise self._trouble(reply, among=replies.values()) from reply
        return replies

    async def each(self, name: str, requests: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        """The same, each on its own: where it failed, the error stands in the place of the answer."""
        replies = await self._answers(name, requests)
        return {
            queue: self._trouble(each) if isinstance(each, Exception) else each for queue, each in replies.items()
        }

    async def _answers(self, name: str, requests: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        if not requests:
            return {}
        await self.be_known()
        wanted = self.server.script(name)
        stood = self.server.there.intersection(requests)
        replies = await self._send(wanted, requests)
        new = [queue for queue, reply in replies.items() if _is(reply, NEW_QUEUE)]
        await self._check_new(new, stood)
        if new and not wanted.makes:
            replies = {queue: reply for queue, reply in replies.items() if queue not in new}
        elif new:
            await self.open_queues(new)
            replies |= await self._send(wanted, {queue: requests[queue] for queue in new})
        if wanted.finds:
            self.server.there.update(queue for queue, reply in replies.items() if not isinstance(reply, Exception))
        return replies

    async def office(self, name: str, request: Any, *blobs: bytes) -> Any:
        """One script on what belongs to no queue."""
        await self.be_known()
        return await self._one(self.server.to_call(self.server.script(name), "", request, blobs))

    async def command(self, name: str, key: str, *words: Word) -> Any:
        """One plain command on what belongs to no queue; `key` as in keys.py."""
        await self.be_known()
        return await self._command(name, *self.server.keys.of_office((key,)), *words)

    async def queue_names(self) -> list[str]:
        """Every queue that there is."""
        return sorted(name.decode() for name in await self.command("SMEMBERS", "queues"))

    async def now(self) -> int:
        """The store's clock."""
        if self.server.clock is not None:
            return self.server.clock.wall()
        seconds, micros = await self._command("TIME")
        return int(seconds) * 1_000_000 + int(micros)

    async def open_queues(self, names: Iterable[str]) -> None:
        """Begin to keep these queues: named first, so that nothing is ever in one that nobody knows."""
        with naming(self.server.watched, "open_queue"):
            await self._open_queues(list(names))

    async def _open_queues(self, names: Sequence[str]) -> None:
        await self.command("SADD", "queues", *names)
        requests = {name: ([each for pair in fresh_queue(name) for each in pair],) for name in names}
        for reply in (await self._send(self.server.script("open_queue"), requests)).values():
            if isinstance(reply, Exception):
                raise self._trouble(reply) from reply

    async def _check_new(self, queues: Sequence[str], stood: set[str]) -> None:
        """Where a queue is not there, all of the store may be gone; `stood` had answered before they were asked.

        In a cluster one server can lose what it had, alone. That is said once: nothing can be done about it.
        """
        if not queues:
            return
        if await self.command("HGET", "meta", "store") != (self.server.mark or "").encode():
            raise emptied(self.server.shown)
        lost = sorted(stood.intersection(queues))
        self.server.there.difference_update(lost)
        if lost:
            raise gone(self.server.shown, lost)

    async def be_known(self) -> None:
        """Learn which store this is, or make it one."""
        server = self.server
        if server.closed:
            raise StoreUnavailable(f"{server.shown}: this store is closed", lasting=True)
        if server.watch.is_due():
            await self._look_round()
        server.watch.check()
        if server.mark is None:
            try:
                with naming(server.watched, "migrate"):
                    await self._begin()
            except StoreUnavailable as error:
                error.maybe_done = False  # what was asked for has not begun
                raise

    async def _begin(self) -> None:
        server = self.server
        (key,) = server.keys.of_office(("meta",))
        mark, version = await self._command("HMGET", key, "store", "version")
        if mark is None:  # only then: a server that is full can still be read
            await self._command("HSETNX", key, "store", token_hex(8))
            mark, version = await self._command("HMGET", key, "store", "version")
        found = int(version or 0)
        if found > VERSION:
            raise too_new(server.shown, found, VERSION)
        server.mark = mark.decode()
        if found < VERSION:
            try:
                server.applied += await bring_up(self, found)
            except BaseException:
                server.mark = None  # the next call tries again
                raise

    async def _look_round(self) -> None:
        """At every server, and whether the store is still the one that we know."""
        server, seconds = self.server, min(self.seconds, LONGEST_LOOK)
        known = server.mark  # as yet: another thread may make the store while this one looks
        (key,) = server.keys.of_office(("meta",))
        try:
            infos = await server.wire.each("INFO", seconds=seconds)
            if all(isinstance(info, Exception) for info in infos):
                raise infos[0]
            mark, version = await server.wire.command("HMGET", key, "store", "version", seconds=seconds)
        except TROUBLE as error:
            raise self._trouble(error, unsent=True) from error
        refusal: StoreUnavailable | None = None
        if known is not None and mark != known.encode():
            refusal = emptied(server.shown)
        elif int(version or 0) > VERSION:
            refusal = too_new(server.shown, int(version), VERSION)
        server.watch.see(infos, refusal)
        if refusal is None and server.mark is not None and server.address.kind is not Kind.SERVER:
            await self._name_again()

    async def _name_again(self) -> None:
        """A master that died may have taken the name of a queue with it, while the queue is on another server."""
        names = self.server.named - {""}
        if names:
            await self.command("SADD", "queues", *names)

    async def _send(self, wanted: Script, requests: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
        calls = [self.server.to_call(wanted, queue, request, blobs) for queue, (request, *blobs) in requests.items()]
        try:
            replies = await self.server.wire.calls(calls, self.seconds)
        except TimeoutError as error:
            raise self._silence() from error
        except TROUBLE as error:
            raise self._trouble(error) from error
        return dict(zip(requests, replies, strict=True))

    async def _one(self, call: Call) -> Any:
        try:
            return await self.server.wire.call(call, self.seconds)
        except TimeoutError as error:
            raise self._silence() from error
        except TROUBLE as error:
            raise self._trouble(error) from error

    async def _command(self, *words: Word) -> Any:
        try:
            return await self.server.wire.command(*words, seconds=self.seconds)
        except TimeoutError as error:
            raise self._silence() from error
        except TROUBLE as error:
            raise self._trouble(error) from error

    def _silence(self) -> StoreUnavailable:
        return StoreUnavailable(f"{self.server.shown}: no answer within {self.seconds:g} s", maybe_done=True)

    def _trouble(self, error: Exception, among: Iterable[Any] = (), *, unsent: bool = False) -> StoreUnavailable:
        """`among` are the answers to what was asked at the same time; `unsent`: it was only looked."""
        if _is(error, EMPTIED):
            return emptied(self.server.shown)
        if is_lost(error):
            self.server.watch.hurry()
        said = translate(error, self.server.shown)
        done = any(not isinstance(reply, Exception) or translate(reply, "").maybe_done for reply in among)
        said.maybe_done = (said.maybe_done or done) and not unsent
        return said


def fresh_queue(name: str) -> list[tuple[str, Any]]:
    """What is written of a queue of which nobody has said anything; nothing for None."""
    return list(kept_settings(Queue(name=name)).items())


def _is(reply: Any, code: str) -> bool:
    return isinstance(reply, ResponseError) and str(reply).startswith(code)
