"""The same tasks in a runner that counts its round trips: apart, since the driver is an extra."""

import os
from pathlib import Path

from windlass.bench.probe import TRIPS
from windlass.bench.probe_trips import count_trips
from windlass.bench.tasks import app as app

# One file, since a runner has one store only: whoever sends writes it.
count_trips(Path(os.environ[TRIPS]))
if os.environ["WINDLASS_STORE"].startswith("redis"):
    from windlass.bench.probe_redis import count_redis_trips

    count_redis_trips(Path(os.environ[TRIPS]))
