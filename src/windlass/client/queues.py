"""app.queues: what people and programs do with queues, each verb also with an `a`."""

from collections.abc import Mapping
from datetime import timedelta

from windlass.client.blocking import blocking
from windlass.client.verbs import Verbs
from windlass.core.moments import duration
from windlass.core.names import check_name
from windlass.core.queue import Queue, settings
from windlass.core.retry import StoredPolicy


class Queues(Verbs):
    """Look at queues, change them, pause them."""

    async def aget(self, name: str) -> Queue:
        """One queue; one that nobody has used has the default settings."""
        check_name(name, "queue")
        queues = {queue.name: queue for queue in await self.alist()}
        return queues.get(name, Queue(name=name))

    async def aset(
        self,
        name: str,
        *,
        max_attempts: int | None = None,
        retry: StoredPolicy | None = None,
        timeout: float | timedelta | None = None,
        retention: Mapping[str, float | timedelta] | None = None,
    ) -> Queue:
        """Replace the operator's change of a queue; it wins over what the code declares. Nothing given: undo it."""
        changed = settings(max_attempts=max_attempts, retry=retry, timeout=timeout, retention=retention)
        store = await self._home._ready()
        return await store.queues.change(check_name(name, "queue"), changed)

    async def apause(self, name: str, length: float | timedelta | None = None) -> Queue:
        """Claim no more from it, for a time or until resumed; running jobs go on."""
        micros = None if length is None else duration(length, "length")
        store = await self._home._ready()
        return await store.queues.pause(check_name(name, "queue"), micros)

    async def aresume(self, name: str) -> Queue:
        """Claim from it again."""
        store = await self._home._ready()
        return await store.queues.resume(check_name(name, "queue"))

    async def alist(self) -> list[Queue]:
        """Every queue that was declared, changed, paused or used."""
        store = await self._home._ready()
        return await store.queues.list()

    get = blocking(aget)
    set = blocking(aset)
    pause = blocking(apause)
    resume = blocking(aresume)
    list = blocking(alist)
