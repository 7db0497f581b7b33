"""The wheel in an empty environment: what is there after `pip install windlass`."""

from pathlib import Path

from tests.packaging.conftest import Environment
from windlass.version import __version__

IMPORT_EVERYTHING = """
import importlib, pkgutil, windlass
names = [module.name for module in pkgutil.walk_packages(windlass.__path__, "windlass.")]
for name in names:
    # What an extra or a framework is needed for is not there.
    parts = (".peers.", "postgres", "redis", "_trips", ".contrib.", "windlass.server.", "windlass.remote", "windlass.metrics")
    if not name.endswith("__main__") and not any(part in name for part in parts):
        importlib.import_module(name)
print(len(names), windlass.__file__)
"""
TOOLS = ("pytest", "hypothesis", "mypy", "ruff", "build")


def test_its_requirements_fit_together(environment: Environment) -> None:
    assert environment.pip("check") == "No broken requirements found.\n"


def test_the_command_and_the_module_say_the_version(environment: Environment) -> None:
    said = f"windlass {__version__}\n"
    assert environment.run("windlass", "--version") == said
    assert environment.run("python", "-m", "windlass", "--version") == said


def test_every_module_is_imported_without_a_development_tool(environment: Environment) -> None:
    missing = f"import importlib.util as u; print([name for name in {TOOLS} if u.find_spec(name)])"
    assert environment.run("python", "-c", missing) == "[]\n"
    count, _, where = environment.run("python", "-c", IMPORT_EVERYTHING).partition(" ")
    assert int(count) > 100
    assert Path(where).is_relative_to(environment.bin.parent)


def test_the_demo_runs_to_its_end_in_an_empty_folder_and_leaves_it_empty(
    environment: Environment, tmp_path: Path
) -> None:
    said = environment.run("windlass", "demo", folder=tmp_path)
    assert "nothing was lost" in said.lower(), said
    assert list(tmp_path.iterdir()) == []
