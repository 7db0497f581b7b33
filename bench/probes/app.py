"""The same tasks in a runner with probes; only such a runner imports it."""

from bench.probes.probe import attach
from bench.tasks import app as app

attach()
