"""circumstances: a job and all that may hold it up."""

from windlass.core.circumstances import Circumstances
from windlass.core.ids import JobId
from windlass.store.redis.access import Access


async def circumstances(access: Access, id_: JobId) -> Circumstances | None:
    raise NotImplementedError
