"""The peers of the bench, each in an environment of its own: `python tools/peers.py FOLDER`.

`bench/peers/NAME.txt` is installed by pip into FOLDER/NAME, `bench/peers/NAME/package.json` by npm. A peer that
cannot be installed is said, and is no failure: the bench says that it was not run.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from versions import MINORS, find  # type: ignore[import-not-found]

ROOT = Path(__file__).parents[1]
WANTED = ROOT / "bench" / "peers"
NEWEST = ("oban",)
"""Those that need a newer Python than the oldest that we run on."""


def main(folder: Path) -> None:
    """All of them, one after the other."""
    for requirements in sorted(WANTED.glob("*.txt")):
        _report(requirements.stem, _by_pip(requirements, folder / requirements.stem))
    for package in sorted(WANTED.glob("*/package.json")):
        _report(package.parent.name, _by_npm(package, folder / package.parent.name))


def _by_pip(requirements: Path, home: Path) -> bool:
    python = _newest() if requirements.stem in NEWEST else Path(sys.executable)
    install = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return _runs([str(python), "-m", "venv", "--clear", str(home)]) and _runs([*install, "-r", str(requirements)])


def _newest() -> Path:
    found = (find(f"3.{minor}") for minor in reversed(MINORS))
    return next((python for python in found if python is not None), Path(sys.executable))


def _by_npm(package: Path, home: Path) -> bool:
    if shutil.which("npm") is None:
        return False
    home.mkdir(parents=True, exist_ok=True)
    shutil.copy(package, home)
    return _runs(["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(home)])


def _runs(command: list[str]) -> bool:
    return subprocess.run(command, check=False).returncode == 0


def _report(name: str, installed: bool) -> None:
    print(f"{name}: {'ready' if installed else 'not installed'}", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
