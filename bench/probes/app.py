"""The same tasks in a runner that counts or profiles itself. Never imported but by such a runner."""

from bench.probes.probe import attach
from bench.tasks import app as app

attach()
