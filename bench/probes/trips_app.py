"""The same tasks in a runner that counts its round trips; a separate module, because the driver is an extra."""

import os
from pathlib import Path

from bench.probes.postgres_trips import count_trips
from bench.probes.probe import TRIPS
from bench.tasks import app as app

# One file, since a runner has one store only.
count_trips(Path(os.environ[TRIPS]))
if os.environ["WINDLASS_STORE"].startswith("redis"):
    from bench.probes.redis_trips import count_redis_trips

    count_redis_trips(Path(os.environ[TRIPS]))
