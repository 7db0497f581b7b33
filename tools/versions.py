"""The wheel on every version of Python that is here: `make test-versions`.

The wheel is built once. Each interpreter other than the one that runs this gets an environment `.venv-3.x`, the wheel
in it, and the tests of WHAT, or those named on the command line; then the demo. All of them run at the same time, and
each prints its output when it is done. An interpreter that is not here is no failure.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
MINORS = (11, 12, 13, 14)
WHAT = (
    "tests/unit",
    "tests/conformance/test_claim.py",
    "tests/conformance/test_signals.py",
    "tests/services",
    "tests/client/test_eager_tasks.py",
    "tests/e2e/test_outcomes.py",
)
"""About a minute for each: annotations, the loop, threads, processes. WHAT="tests/client tests/e2e" for more."""
WITHOUT = "not pgbouncer and not cluster"
"""Nothing in between depends on the version of Python."""
OURS = ("PYTHON", "WINDLASS", "VIRTUAL_ENV")
"""Variables that begin so would let the wheel's environment see this tree instead."""

TESTS = "WINDLASS_TEST_"
"""But these say which servers to test on."""


def main(wanted: list[str]) -> int:
    """Zero if all that was run passed."""
    here = [f"3.{minor}" for minor in MINORS if (3, minor) != sys.version_info[:2]]
    found = {name: python for name in here if (python := find(name))}
    for name in here:
        if name not in found:
            print(f"Python {name}: not here, not tested", flush=True)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor() as pool:
        wheel = build(Path(folder))
        runs = {name: pool.submit(Version(name, Path(folder)).passes, found[name], wheel, wanted) for name in found}
        failed = [name for name, run in runs.items() if not run.result()]
    if failed:
        print(f"failed on Python {', '.join(failed)}")
    return 1 if failed else 0


def build(folder: Path) -> Path:
    """The wheel of this tree."""
    pip(Path(sys.executable), "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("*.whl")
    return wheel


def find(name: str) -> Path | None:
    """An interpreter that runs: on the path, or one that pyenv has but does not let through."""
    for candidate in _candidates(name):
        said = subprocess.run([candidate, "--version"], capture_output=True, text=True, check=False)
        if said.returncode == 0 and said.stdout.startswith(f"Python {name}."):
            return Path(candidate)
    return None


def _candidates(name: str) -> Iterator[str]:
    if (on_path := shutil.which(f"python{name}")) is not None:
        yield on_path
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from sorted(map(str, pyenv.glob(f"versions/{name}.*/bin/python{name}")))


class Version:
    """One interpreter, and a file with the output of what it runs."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.output = folder / f"output-{name}"

    def passes(self, python: Path, wheel: Path, wanted: list[str]) -> bool:
        """Set up, test, print the output and how long it took."""
        begun = time.monotonic()
        environment = prepare(ROOT / f".venv-{self.name}", python, wheel)
        ready = time.monotonic()
        tested = self._passes_tests(environment / "python", wanted or list(WHAT))
        toured = self._run([environment / "windlass", "demo"], shown=False)
        took = f"ready in {ready - begun:.0f} s, {time.monotonic() - ready:.0f} s"
        print(
            f"{self.output.read_text()}Python {self.name}: tests {_word(tested)}, demo {_word(toured)}, {took}",
            flush=True,
        )
        return tested and toured

    def _passes_tests(self, python: Path, wanted: list[str]) -> bool:
        """Whether the tests pass, at the second try at the latest."""
        # A cache of its own: `make test-failed` must find what failed on the default version.
        cache = ["-o", f"cache_dir={python.parents[1] / '.pytest_cache'}"]
        arguments = ["-m", "not extended", "-k", WITHOUT, *cache, *wanted]
        first = self._run([python, "-m", "pytest", "--cache-clear", *arguments])
        return first or self._run([python, "-m", "tools.flaky", *arguments])

    def _run(self, command: list[Path | str], *, shown: bool = True) -> bool:
        """Whether it ended well."""
        with self.output.open("a") as output:
            stdout = output if shown else subprocess.DEVNULL
            ran = subprocess.run(command, cwd=ROOT, env=clean(), stdout=stdout, stderr=output, check=False)
        return ran.returncode == 0


def prepare(folder: Path, python: Path, wheel: Path) -> Path:
    """An environment with the tools of the tests, kept until the project file changes, and this wheel."""
    stamp, inside = folder / ".ready", folder / "bin" / "python"
    if not stamp.exists() or stamp.stat().st_mtime < (ROOT / "pyproject.toml").stat().st_mtime:
        subprocess.run([python, "-m", "venv", "--clear", "--without-pip", folder], check=True, env=clean())
        pip(inside, "install", "--group", f"{ROOT / 'pyproject.toml'}:test", str(wheel))
        stamp.touch()
    else:
        pip(inside, "install", "--no-deps", "--force-reinstall", str(wheel))
    return folder / "bin"


def pip(python: Path, *arguments: str) -> None:
    """Our pip, working on that environment."""
    quiet = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*quiet, "--python", python, *arguments], check=True, env=clean())


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(OURS) or name.startswith(TESTS)}


def _word(good: bool) -> str:
    return "passed" if good else "FAILED"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
