"""The workers of examples/workers: killed, stopped, and without their server for a while."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.server.rust import rust_worker
from tests.server.test_serve import Served
from tests.support.processes import until
from windlass import App
from windlass.core.jobs.job import Job

EXAMPLES = Path(__file__).parents[2] / "examples" / "workers"
LEASE = "2s"
HANDLERS = """
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Snooze, Worker } from '%(examples)s/worker.mjs'

const worker = new Worker({
  server: process.env.WINDLASS_SERVER,
  token: process.env.WINDLASS_TOKEN,
  queues: ['default'],
  slots: 10,
  handlers: {
    quick: async ({ n }) => n,
    large: async () => 10n,
    odd: async () => { throw { name: 7, message: { code: 1 } } },
    half: async () => { throw new Error('cut \\ud83d') },
    chatty: async (_payload, { log }) => { for (let n = 0; n < 250; n++) log(`${n}`) },
    fail: async () => { throw new RangeError('not this one') },
    nap: async (_payload, { job }) => { if (job.attempt === 1) throw new Snooze(0.1); return 'rested' },
    wait: async ({ file }, { signal, log, progress }) => {
      log('begun')
      progress(1, 2)
      while (!existsSync(file) && !signal.aborted) await sleep(20)
      return 'there'
    }
  }
})
process.on('SIGTERM', () => worker.stop())
await worker.run()
"""

node = pytest.mark.skipif(shutil.which("node") is None, reason="no Node here")
shell = pytest.mark.skipif(shutil.which("jq") is None or shutil.which("curl") is None, reason="no curl or no jq here")


class Foreign:
    """A server with a short lease, and workers in processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.served = Served(folder, f"sqlite:///{folder}/jobs.db")
        self.server = self.served.start("--worker-lease", LEASE, "--unready", "0s")
        self.app: App = self.served.app
        token = self.app.tokens.create("workers", ["work"]).text
        address = f"http://127.0.0.1:{self.served.port}"
        self.environment = {**os.environ, "WINDLASS_SERVER": address, "WINDLASS_TOKEN": token}
        self.workers: list[subprocess.Popen[bytes]] = []

    def javascript(self) -> subprocess.Popen[bytes]:
        script = self.folder / "worker.mjs"
        script.write_text(HANDLERS % {"examples": EXAMPLES})
        return self._start(["node", str(script)])

    def shell(self, **more: str) -> subprocess.Popen[bytes]:
        self.environment.update(more)
        return self._start([str(EXAMPLES / "worker.sh")])

    def rust(self) -> subprocess.Popen[bytes]:
        return self._start([rust_worker()])

    def _start(self, words: list[str]) -> subprocess.Popen[bytes]:
        self.workers.append(subprocess.Popen(words, env=self.environment, start_new_session=True))
        return self.workers[-1]

    def restart_server(self, *, after: Callable[[], None]) -> None:
        self.server.kill()
        self.served.client.close()
        after()
        self.server = self.served.start("--worker-lease", LEASE, "--unready", "0s")

    def jobs(self, *ids: str) -> list[Job]:
        return [self.app.jobs.get(id_) for id_ in ids]

    def completed(self, ids: list[str]) -> bool:
        return all(job.status == "completed" for job in self.jobs(*ids))

    def end(self) -> None:
        for worker in self.workers:
            if worker.poll() is None:
                os.killpg(worker.pid, signal.SIGKILL)
                worker.wait()
        self.served.end()


@pytest.fixture
def foreign(tmp_path: Path) -> Iterator[Foreign]:
    made = Foreign(tmp_path)
    yield made
    made.end()


@node
def test_a_worker_in_javascript_runs_jobs_and_ends_when_it_is_told_to(foreign: Foreign) -> None:
    ids = [foreign.app.enqueue("quick", {"n": n}).id for n in range(50)]
    failed = foreign.app.enqueue("fail", {}, max_attempts=1).id
    snoozed = foreign.app.enqueue("nap", {}).id
    worker = foreign.javascript()
    until(lambda: foreign.completed([*ids, snoozed]), "all jobs are completed")
    assert [job.result for job in foreign.jobs(*ids)] == list(range(50))
    until(lambda: foreign.jobs(failed)[0].status == "dead", "the failing one is dead")
    (dead,) = foreign.jobs(failed)
    assert dead.error is not None
    assert (dead.error.type, dead.error.message) == ("RangeError", "not this one")
    worker.terminate()
    assert worker.wait(30) == 0
    assert foreign.app.workers.list() == []


@node
def test_a_result_or_an_error_that_is_not_json_fails_only_its_own_job_in_javascript(foreign: Foreign) -> None:
    ids = [foreign.app.enqueue(type_, {}, max_attempts=1, timeout=None).id for type_ in ("large", "odd", "half")]
    chatty = foreign.app.enqueue("chatty", {}, timeout=40 * 86_400).id
    foreign.javascript()
    until(lambda: all(job.status == "dead" for job in foreign.jobs(*ids)), "the three are dead")
    assert [job.error.message[:5] for job in foreign.jobs(*ids) if job.error] == ["Do no", "[obje", "cut \ufffd"]
    until(lambda: foreign.completed([chatty]), "the last one is completed")
    assert foreign.jobs(chatty)[0].logs[-1].text == "249"


@node
def test_the_jobs_of_a_killed_worker_in_javascript_run_again(foreign: Foreign) -> None:
    file = foreign.folder / "now"
    ids = [foreign.app.enqueue("wait", {"file": str(file)}).id for _ in range(3)]
    worker = foreign.javascript()
    until(lambda: all(job.logs and job.progress for job in foreign.jobs(*ids)), "all have begun, and said so")
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    file.touch()
    foreign.javascript()
    until(lambda: foreign.completed(ids), "all jobs are completed")
    assert {job.attempts[0].outcome for job in foreign.jobs(*ids)} == {"crashed among several"}


@node
def test_a_worker_goes_on_after_its_server_was_away_for_longer_than_a_lease(foreign: Foreign) -> None:
    file = foreign.folder / "now"
    ids = [foreign.app.enqueue("wait", {"file": str(file)}).id for _ in range(3)]
    foreign.javascript()
    until(lambda: all(job.status == "running" for job in foreign.jobs(*ids)), "all run")

    lease = foreign.jobs(ids[0])[0].lease_expires_at
    assert lease is not None

    def wait() -> None:
        until(lambda: datetime.now(UTC) > lease, "the lease is over")

    foreign.restart_server(after=wait)
    file.touch()
    until(lambda: foreign.completed(ids), "all jobs are completed")


@node
def test_a_cancelled_job_ends_in_javascript(foreign: Foreign) -> None:
    id_ = foreign.app.enqueue("wait", {"file": str(foreign.folder / "never")}).id
    foreign.javascript()
    until(lambda: foreign.jobs(id_)[0].status == "running", "it runs")
    foreign.app.jobs.cancel(id_)
    until(lambda: foreign.jobs(id_)[0].status == "cancelled", "it is cancelled")


@shell
def test_a_worker_in_shell_runs_jobs_and_ends_when_it_is_told_to(foreign: Foreign) -> None:
    ids = [foreign.app.enqueue("mail.welcome", {"user_id": n}).id for n in range(3)]
    failed = foreign.app.enqueue("unknown.handler", {}, max_attempts=1).id
    worker = foreign.shell(TYPES="mail.welcome,unknown.handler")
    until(lambda: foreign.completed(ids), "all jobs are completed")
    assert [job.result for job in foreign.jobs(*ids)] == [{"sent": n} for n in range(3)]
    until(lambda: foreign.jobs(failed)[0].status == "dead", "the failing one is dead")
    worker.terminate()
    foreign.app.enqueue("mail.welcome", {"user_id": 9})
    assert worker.wait(40) == 0


@shell
def test_a_result_or_an_error_that_is_refused_fails_only_its_own_job_in_shell(foreign: Foreign) -> None:
    script = foreign.folder / "handlers"
    script.write_text(
        "long() { head -c $1 /dev/zero | tr '\\0' x; }\n"
        "handle_refused() { long 70000 | jq -R .; }\n"
        "handle_huge() { long 300000 | jq -R .; }\n"
        "handle_text() { echo two words; }\n"
        "handle_loud() { long 300000 >&2; return 3; }\n"
    )
    types = ["refused", "huge", "text", "loud"]
    ids = [foreign.app.enqueue(type_, {}, max_attempts=1).id for type_ in types]
    foreign.shell(TYPES=",".join([*types, "mail.welcome"]), BASH_ENV=str(script))
    until(lambda: all(job.status == "dead" for job in foreign.jobs(*ids)), "all four are dead")
    kinds = [job.error.type if job.error else "" for job in foreign.jobs(*ids)]
    assert kinds == ["InvalidResult", "InvalidResult", "InvalidResult", "exit 3"]
    last = foreign.app.enqueue("mail.welcome", {"user_id": 1}).id
    until(lambda: foreign.completed([last]), "the worker goes on")


@shell
def test_the_job_of_a_killed_worker_in_shell_runs_again(foreign: Foreign) -> None:
    script = foreign.folder / "slow"
    script.write_text("handle_slow() { touch '%s'; sleep 600; }\n" % (foreign.folder / "begun"))
    id_ = foreign.app.enqueue("slow", {}).id
    worker = foreign.shell(TYPES="slow", BASH_ENV=str(script))
    until(lambda: (foreign.folder / "begun").exists(), "it has begun")
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    until(lambda: foreign.jobs(id_)[0].status == "pending", "it waits for another worker")
    assert foreign.jobs(id_)[0].crashes == 1


def test_a_worker_in_rust_runs_jobs_and_ends_when_it_is_told_to(foreign: Foreign) -> None:
    ids = [foreign.app.enqueue("check.echo", {"value": n}).id for n in range(50)]
    failed = foreign.app.enqueue("check.fail", {"message": "not this one"}, max_attempts=1).id
    worker = foreign.rust()
    until(lambda: foreign.completed(ids), "all jobs are completed")
    assert [job.result for job in foreign.jobs(*ids)] == list(range(50))
    until(lambda: foreign.jobs(failed)[0].status == "dead", "the failing one is dead")
    worker.terminate()
    assert worker.wait(30) == 0
    assert foreign.app.workers.list() == []


def test_a_worker_in_rust_outlives_its_server_and_its_jobs_outlive_it(foreign: Foreign) -> None:
    ids = [foreign.app.enqueue("check.slow", {"seconds": 3}).id for _ in range(3)]
    worker = foreign.rust()
    until(lambda: all(job.status == "running" for job in foreign.jobs(*ids)), "all run")
    lease = foreign.jobs(ids[0])[0].lease_expires_at
    assert lease is not None

    def wait() -> None:
        until(lambda: datetime.now(UTC) > lease, "the lease is over")

    foreign.restart_server(after=wait)
    until(lambda: foreign.completed(ids), "all jobs are completed")
    last = foreign.app.enqueue("check.slow", {"seconds": 600}).id
    until(lambda: foreign.jobs(last)[0].status == "running", "it runs")
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()
    until(lambda: foreign.jobs(last)[0].status == "pending", "it waits for another worker")
    assert foreign.jobs(last)[0].crashes == 1
