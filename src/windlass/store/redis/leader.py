"""The coordinator's office: one holder at a time, and a term that grows with each; times are the server's."""

from windlass.store.records import Campaign
from windlass.store.redis.access import Access


async def campaign(access: Access, bid: Campaign) -> int | None:
    """Take the office if it is free, keep it if it is ours."""
    term: int = await access.office("campaign", (bid.candidate, bid.length))
    return term or None


async def resign(access: Access, candidate: str) -> None:
    """Leave the office, if it is ours."""
    await access.office("resign", (candidate,))
