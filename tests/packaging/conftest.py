"""What is built, and an empty environment that has it: made once for the folder."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).parents[2]
OURS = ("PYTHON", "WINDLASS", "VIRTUAL_ENV")
"""Variables that begin so would let the environment see this tree, or settings of the user of the tests."""

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]


class Built(msgspec.Struct):
    """The two files that are published."""

    wheel: Path
    source: Path


class Environment(msgspec.Struct):
    """A virtual environment with the wheel in it, and nothing of ours besides."""

    bin: Path

    def run(self, command: str, *arguments: str, folder: Path | None = None) -> str:
        """What one of its commands prints."""
        return run([str(self.bin / command), *arguments], folder or self.bin)

    def pip(self, *arguments: str) -> str:
        """What our pip says about it: to install one there would take longer than all the rest."""
        return run([*PIP, "--python", str(self.bin / "python"), *arguments], self.bin)


def run(command: list[str], folder: Path) -> str:
    """What a command prints; it must end well."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
    ran = subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The source archive of this tree, and the wheel that is made from the archive alone."""
    folder = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)], folder)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return Built(wheel, source)


@pytest.fixture(scope="session")
def environment(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Where `pip install windlass` has just run."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder)
    made = Environment(folder / "bin")
    made.pip("install", str(built.wheel))
    return made
