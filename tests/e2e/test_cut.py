"""A worker whose connections are cut again and again: it goes on, and no handler is broken off or begun twice."""

import random
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.e2e.stage import Stage
from tests.support.processes import let_pass
from tests.support.proxy import Proxy

CUTS = 24
on_servers = pytest.mark.parametrize("address", ["postgres", "redis"], indirect=True)


@pytest.fixture
def proxy(stage: Stage) -> Iterator[Proxy]:
    """On the way from workers to the store; the test itself reaches it without."""
    server = urlsplit(stage.url)
    assert server.hostname is not None
    assert server.port is not None
    with Proxy(server.hostname, server.port) as line:
        near = server._replace(netloc=server.netloc.replace(f":{server.port}", f":{line.port}"))
        stage.processes.environment["WINDLASS_STORE"] = near.geturl()
        yield line


@on_servers
def test_a_worker_goes_on_when_its_connections_are_cut_at_any_moment(stage: Stage, proxy: Proxy) -> None:
    """Workers run on uvloop, where the error of a closed connection is another."""
    worker = stage.worker("--concurrency", "8", lease="10s")
    runner = worker.runner()
    moments = random.Random(1)
    cut = 0
    for turn in range(CUTS):
        if turn % 4 == 0:
            stage.enqueue("anap", 10)
            stage.enqueue("nap", 10)
        let_pass(moments.uniform(0.0, 0.05))
        cut += proxy.cut(reset=turn % 2 == 0)
    stage.until_finished()
    assert cut, "nothing was cut"
    assert worker.runner() == runner, "the runner has died"
    assert {job.crashes for job in stage.all_jobs()} == {0}
    stage.check()
    stage.close_down()
