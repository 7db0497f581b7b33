"""Which REST workers are silent: their beats in the store, timed by the clock of this server."""

from collections.abc import Mapping

from windlass.core.moments import Micros
from windlass.store.clock import since_boot


class Silence:
    """When this server first saw the last beat of each worker. Only a time in which it could see beats counts."""

    def __init__(self) -> None:
        self._observed: dict[str, tuple[object, Micros]] = {}
        """By worker: its last beat in the store, and when this server first saw that beat."""
        self._looked_at: Micros = since_boot()
        """When it last looked for silent workers."""

    def begin(self) -> None:
        """This server looks from now on."""
        self._looked_at = since_boot()

    def restart(self) -> None:
        """Count the silence of every worker anew: beats could not be stored or seen."""
        self._observed.clear()

    def forget(self, id_: str) -> None:
        """Forget a worker that has ended."""
        self._observed.pop(id_, None)

    def silent(self, beats: Mapping[str, object], now: Micros, lease: Micros) -> list[str]:
        """The workers without a new beat for a whole lease; one that is not in `beats` is not registered any more."""
        if 0 < lease // 2 < now - self._looked_at:
            self.restart()  # this server was stopped, or waited for the store: it received no beats meanwhile
        self._looked_at = now
        for id_, beat in beats.items():
            if self._observed.get(id_, (None, now))[0] != beat:
                self._observed[id_] = (beat, now)
        return [id_ for id_, (_, since) in self._observed.items() if now - since > lease]
