"""Cancelled links that are to wait again: not for parents that will never complete."""

from collections import defaultdict
from collections.abc import Sequence

from windlass.core.chain import Turn, parents_left, turn_of
from windlass.core.ids import JobId
from windlass.store.redis.access import Access
from windlass.store.redis.anywhere import see_anywhere
from windlass.store.redis.decide import Decided, replace_decided
from windlass.store.redis.heirs import register
from windlass.store.redis.record import Letter
from windlass.store.redis.replace import Replaced
from windlass.store.redis.sight import Seen


async def replace_waiting(access: Access, decided: Decided) -> dict[JobId, Replaced]:
    """Write what was decided; who waits in vain is left as it is, and the others ask for their parents."""
    waiting = [seen for seen, after in decided if after.letter == Letter.BLOCKED]
    vain = await _vain_parents(access, waiting) if waiting else {}
    replaced = await replace_decided(access, [(seen, after) for seen, after in decided if seen.record.id not in vain])
    asking: dict[str, list[JobId]] = defaultdict(list)
    for seen in waiting:
        if seen.record.id not in vain and replaced[seen.record.id].status is not None:
            asking[seen.queue].append(seen.record.id)
    await register(access, asking)
    return replaced | {id_: Replaced(None, parent=parent) for id_, parent in vain.items()}


async def _vain_parents(access: Access, links: Sequence[Seen]) -> dict[JobId, JobId]:
    """By link: a parent that has ended badly, or is gone."""
    left = {seen.record.id: parents_left(seen.record.fields.parents or "[]", seen.record.input) for seen in links}
    found = (await see_anywhere(access, {parent for parents in left.values() for parent in parents})).jobs
    vain: dict[JobId, JobId] = {}
    for id_, parents in left.items():
        for parent in parents:
            if parent not in found or turn_of(found[parent].record.status) is Turn.CALL_OFF:
                vain.setdefault(id_, parent)
    return vain
