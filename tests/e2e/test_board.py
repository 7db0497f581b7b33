"""The shipped board, rules and scaler queries, run by Prometheus against a real worker and a real server."""

import json
import math
import shutil
import urllib.parse
import urllib.request
from typing import Any

import pytest
import yaml

from tests.e2e.stage import Stage, answer, free_port
from tests.meta.tree import ROOT
from tests.support.processes import until

DEPLOY = ROOT / "deploy"
BOARD = json.loads((DEPLOY / "grafana/windlass.json").read_text())
RULES = yaml.safe_load((DEPLOY / "prometheus/rules.yml").read_text())["groups"]
SCALER = yaml.safe_load((DEPLOY / "keda/prometheus.yaml").read_text())["spec"]["triggers"][0]["metadata"]["query"]

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="prometheus is not here: apt install prometheus"
)


class Prometheus:
    """A Prometheus that scrapes a worker and a server every second, with the shipped rules."""

    def __init__(self, stage: Stage, worker: int, server: int) -> None:
        self.port = free_port()
        token = stage.app.tokens.create("prometheus", ["read"]).text
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(DEPLOY / "prometheus/rules.yml")],
            "scrape_configs": [
                _scrape("workers", worker),
                {**_scrape("server", server), "authorization": {"type": "Bearer", "credentials": token}},
            ],
        }
        (stage.folder / "prometheus.yml").write_text(json.dumps(config))
        self._words = (
            f"--config.file={stage.folder}/prometheus.yml",
            f"--storage.tsdb.path={stage.folder}/prometheus",
            f"--web.listen-address=127.0.0.1:{self.port}",
        )

    def start(self, stage: Stage) -> None:
        run = "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"
        stage.processes.start("prometheus", "-c", run, "prometheus", *self._words)
        until(lambda: answer(self.port, "/-/ready") == 200, "Prometheus is ready")

    def values(self, query: str) -> list[float]:
        """The values that a query finds, without those that are no number."""
        found = self.ask("query", query=query)["result"]
        return [value for each in found if not math.isnan(value := float(each["value"][1]))]

    def ask(self, what: str, **arguments: str) -> Any:
        url = f"http://127.0.0.1:{self.port}/api/v1/{what}?{urllib.parse.urlencode(arguments)}"
        with urllib.request.urlopen(url, timeout=10) as response:
            return json.load(response)["data"]


def _scrape(name: str, port: int) -> dict[str, Any]:
    return {"job_name": name, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}


@pytest.fixture
def prometheus(stage: Stage) -> Prometheus:
    worker, server = free_port(), free_port()
    found = Prometheus(stage, worker, server)
    stage.worker("--concurrency", "4", "--health", f"127.0.0.1:{worker}")
    stage.processes.start("serve", "-m", "windlass", "serve", "--port", str(server))
    until(lambda: answer(server, "/readyz") == 200, "the server is ready")
    found.start(stage)
    return found


def board_queries(queue: str, type_: str) -> dict[str, str]:
    """Every query of every panel, by its title, with the variables filled in as Grafana does."""
    variables = {"$queue": queue, "$type": type_, "$__rate_interval": "1m"}
    found = {}
    for panel in BOARD["panels"]:
        for number, target in enumerate(panel["targets"]):
            query = target["expr"]
            for name, value in variables.items():
                query = query.replace(name, value)
            assert "$" not in query, f"{panel['title']}: a variable is unknown"
            found[f"{panel['title']} {number} ({queue}, {type_})"] = query
    return found


def rule_queries() -> dict[str, str]:
    """The recording rules, by name."""
    return {rule["record"]: rule["record"] for group in RULES for rule in group["rules"] if "record" in rule}


def test_every_query_of_the_board_the_rules_and_the_scaler_has_an_answer(
    stage: Stage, prometheus: Prometheus
) -> None:
    wanted = board_queries(".*", ".*") | board_queries("default", "quick") | rule_queries() | {"KEDA": SCALER}
    blocked = stage.enqueue("block", 3, gate="gate")
    stage.until_started(blocked)
    empty = dict(wanted)

    def all_answer() -> bool:
        stage.enqueue("quick", 3)
        stage.enqueue("decide", 1, what="dead")
        for title, query in list(empty.items()):
            if prometheus.values(query):
                del empty[title]
        return not empty

    try:
        until(all_answer, "every query has an answer")
    finally:
        print("without an answer:", *empty.items(), sep="\n")
    # A sample may be of a moment in which a quick job ran beside those that wait.
    until(lambda: prometheus.values(wanted["Slots in use 0 (.*, .*)"]) == [0.75], "three of four slots are in use")
    assert prometheus.values(wanted["Store 0 (.*, .*)"]) == prometheus.values(wanted["Workers 0 (.*, .*)"]) == [1]
    for name, metric in choices().items():
        found = prometheus.ask(f"label/{name}/values", **{"match[]": metric})
        assert set(found) == {"queue": {"default", "images"}, "type": {"block", "decide", "quick"}}[name]
    check_scaler(stage, prometheus)
    stage.open("gate")


def choices() -> dict[str, str]:
    """Each variable of the board, and the metric that has its values."""
    found = {each["name"]: each["query"]["query"] for each in BOARD["templating"]["list"][1:]}
    parts = {name: query.removeprefix("label_values(").removesuffix(")").split(", ") for name, query in found.items()}
    assert all(label == name for name, (_, label) in parts.items())
    return {name: metric for name, (metric, _) in parts.items()}


def check_scaler(stage: Stage, prometheus: Prometheus) -> None:
    """Prometheus counts what `windlass scale` counts, also of a paused queue."""
    until(lambda: prometheus.values(SCALER) == [3], "three jobs run, and none waits")
    stage.app.queues.pause("default")
    stage.enqueue("quick", 5)
    pending = 'windlass_queue_jobs{queue="default",status="pending"}'
    until(lambda: prometheus.values(pending) == [5], "the paused jobs are seen")
    assert prometheus.values(SCALER) == [3] == [int(stage.command("scale", "--queues", "default"))]
