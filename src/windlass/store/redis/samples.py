"""Samples, made of meters."""

from windlass.core.course import Stretch, Window
from windlass.core.samples import Sampled
from windlass.store.redis.access import Access


async def make_samples(access: Access) -> Sampled:
    raise NotImplementedError


async def course(access: Access, window: Window) -> Stretch:
    raise NotImplementedError
