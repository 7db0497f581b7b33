"""A worker that was started with standard input, output and error closed: `windlass worker ... <&- >&- 2>&-`."""

import pytest

from tests.e2e.stage import Stage
from tests.support.parts import extended

EXEC = "import os, sys; os.closerange(0, 3); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"


@pytest.mark.parametrize("type_", ["quick", *extended(["aquick"])])
def test_a_worker_without_standard_descriptors_works_and_drains(stage: Stage, type_: str) -> None:
    worker = stage.processes.start("worker", "-c", EXEC, "-m", "windlass", "worker", "shop:app", "--lease", "2s")
    stage.workers.append(worker)
    stage.until_status(stage.enqueue_one(type_), "completed")
    stage.check()
    stage.close_down()
