"""The same tasks in a runner that counts its round trips: apart, since the driver is an extra."""

import os
from pathlib import Path

from windlass.bench.probe import TRIPS
from windlass.bench.probe_trips import count_trips
from windlass.bench.tasks import app as app

count_trips(Path(os.environ[TRIPS]))
