"""The same tasks in a runner that counts or profiles itself. Never imported but by such a runner."""

from windlass.bench.probe import attach
from windlass.bench.tasks import app as app

attach()
