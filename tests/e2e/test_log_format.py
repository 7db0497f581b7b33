"""Logs of a real worker as JSON: every line of supervisor, runner and handlers, and none with a payload."""

import json
import signal

from tests.e2e.stage import Stage


def test_every_line_is_json_with_the_fields_of_the_schema(stage: Stage) -> None:
    (stage.folder / "windlass.toml").write_text('log_format = "json"\n')
    (stage.folder / "talk.py").write_text(
        "import logging\n"
        "from windlass import App, Dead\n"
        "app = App()\n"
        "@app.task\n"
        "def talk(secret: str) -> None:\n"
        "    logging.getLogger('shop').warning('about to fail')\n"
        "    raise Dead('no')\n"
    )
    worker = stage.worker("--verbose", app="talk:app")
    id_ = stage.enqueue_one("talk", secret="hunter2")
    stage.until_status(id_, "dead")
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0
    lines = [json.loads(line) for line in worker.output.splitlines()]
    assert all({"at", "level", "logger", "event", "message"} <= line.keys() for line in lines)
    events = {line["event"]: line for line in lines}
    assert {"worker_started", "runner_started", "jobs_claimed", "log", "attempt_ended", "worker_stopped"} <= {*events}
    assert {**events["log"], "job": id_, "type": "talk", "queue": "default", "attempt": 1} == events["log"]
    ended = events["attempt_ended"]
    assert (ended["job"], ended["outcome"], ended["status"], ended["level"]) == (id_, "dead", "dead", "error")
    assert ended["duration"] >= 0
    assert "hunter2" not in worker.output


def test_the_variable_wins_over_the_file_and_a_wrong_format_is_refused(stage: Stage) -> None:
    (stage.folder / "windlass.toml").write_text('log_format = "json"\n')
    worker = stage.worker("--until-empty", environment={"WINDLASS_LOG_FORMAT": "logfmt"})
    assert worker.wait() == 0
    assert all(line.startswith("at=") and " event=" in line for line in worker.output.splitlines())
    wrong = stage.start_worker("--log-format", "xml")
    assert wrong.wait() == 2
    assert "--log-format: 'xml' is not one of text, json, logfmt" in wrong.output


TRACED = """
import logging

from opentelemetry.sdk.trace import TracerProvider

from windlass import App
from windlass.contrib.otel import trace_jobs

app = App()
trace_jobs(app, tracer_provider=TracerProvider())


@app.task
def here() -> None:
    logging.getLogger("shop").info("at work")


@app.task(run_in="process")
def apart() -> None:
    logging.getLogger("shop").info("at work apart")


@app.on_stop
def fails() -> None:
    raise RuntimeError("the pool is closed")


@app.task(max_attempts=1)
def broken() -> None:
    raise ValueError("always")
"""


def test_traces_are_in_the_lines_and_repeated_failures_are_counted_to_the_end(stage: Stage) -> None:
    (stage.folder / "traced.py").write_text(TRACED)
    here, apart = stage.enqueue_one("here"), stage.enqueue_one("apart")
    stage.enqueue("broken", 15, {"max_attempts": 1})
    words = ("--until-empty", "--verbose", "--log-format", "json")
    worker = stage.start_worker(*words, app="traced:app")
    assert worker.wait() == 0
    lines = [json.loads(line) for line in worker.output.splitlines()]
    ended = {line["job"]: line for line in lines if line["event"] == "attempt_ended"}
    said = {line["job"]: line for line in lines if line["event"] == "log"}
    assert {id_: line["message"] for id_, line in said.items()} == {here: "at work", apart: "at work apart"}
    for id_, line in said.items():
        assert (line["trace"], line["span"]) == (ended[id_]["trace"], ended[id_]["span"])
    assert [line["event"] for line in lines if "the pool is closed" in line["message"]] == ["hook_failed"] * 2
    assert [line.text for line in stage.app.jobs.get(apart).logs] == ["INFO shop: at work apart"]
    assert (len(ended[apart]["trace"]), len(ended[apart]["span"])) == (32, 16)
    assert [line["times"] for line in lines if line["event"] == "failures_repeated"] == [5]
