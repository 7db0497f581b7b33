"""Deliberate breakages, and the tests that must notice them: `make mutants`.

Each file in tools/mutants breaks one promise by a small edit. The edit is made in a copy of the tree, the tests that
it names are run there, and they must fail. A mutant that survives, or whose edit no longer applies, fails the run.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
COPIED = ("src", "tests", "pyproject.toml")
PATIENCE = 180
"""Seconds after which tests that hang have noticed, too."""
AT_ONCE = 2
TESTS_FAILED = 1
"""pytest's exit code; any other one means that the tests could not be run, which proves nothing."""


class Edit(NamedTuple):
    """Replace one piece of one file."""

    file: str
    find: str
    replace: str

    def apply(self, root: Path) -> None:
        path = root / self.file
        text = path.read_text()
        if text.count(self.find) != 1:
            raise ValueError(f"{self.file} has {text.count(self.find)} times: {self.find.strip()}")
        path.write_text(text.replace(self.find, self.replace))


class Mutant(NamedTuple):
    """One breakage, and the tests that must notice."""

    name: str
    title: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]
    only: str = ""
    """Which of these tests, as in `pytest -k`: a store, if the others cannot notice. Empty: all of them."""


class Verdict(NamedTuple):
    """What became of it."""

    mutant: Mutant
    killed: bool
    how: str
    seconds: float


def mutants(folder: Path = ROOT / "tools" / "mutants") -> list[Mutant]:
    """All of them, by name."""
    return [_read(path) for path in sorted(folder.glob("*.toml"))]


def _read(path: Path) -> Mutant:
    data = tomllib.loads(path.read_text())
    edits = tuple(Edit(each["file"], each["find"], each["replace"]) for each in data["edit"])
    return Mutant(path.stem, data["title"], edits, tuple(data["tests"]), data.get("only", ""))


def copy_tree(target: Path) -> None:
    """The source and its tests, as they are now."""
    leave_out = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=leave_out)
        else:
            shutil.copy(source, target / name)


def run_tests(root: Path, tests: tuple[str, ...], only: str, patience: float) -> tuple[int, str]:
    """pytest's exit code in the copy, and what it said."""
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=line"]
    # A temporary folder of its own: several of these run at once.
    command += [f"--basetemp={root / 'temporary'}", *tests, "-k", only]
    try:
        ran = subprocess.run(
            command, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=patience
        )
    except subprocess.TimeoutExpired:
        return TESTS_FAILED, f"hung for {patience:g} s"
    return ran.returncode, ran.stdout + ran.stderr


def judge(edits: tuple[Edit, ...], tests: tuple[str, ...], only: str, patience: float = PATIENCE) -> tuple[int, str]:
    """Run the tests on a copy with these edits in it."""
    with tempfile.TemporaryDirectory(prefix="windlass-mutant-") as folder:
        root = Path(folder)
        copy_tree(root)
        for edit in edits:
            edit.apply(root)
        return run_tests(root, tests, only, patience)


def try_one(mutant: Mutant) -> Verdict:
    """Killed, if its tests fail."""
    start = time.monotonic()
    try:
        code, said = judge(mutant.edits, mutant.tests, mutant.only)
    except (ValueError, OSError) as error:
        return Verdict(mutant, False, f"does not apply: {error}", 0.0)
    if code == TESTS_FAILED:
        how = next((line for line in said.splitlines() if line.startswith("FAILED")), said.strip()[-100:])
        how = how.removeprefix("FAILED ").partition(" - ")[0].rpartition("/")[2]
    else:
        how = "SURVIVED" if code == 0 else f"the tests cannot be run: {said.strip()[-300:]}"
    return Verdict(mutant, code == TESTS_FAILED, how, time.monotonic() - start)


def main(names: list[str]) -> int:
    """Every mutant, or those that are named."""
    chosen = [each for each in mutants() if not names or each.name in names]
    if not chosen:
        print(f"there is no mutant {' '.join(names)}; there are {', '.join(each.name for each in mutants())}")
        return 2
    print(f"{len(chosen)} mutants. First their tests without any of them: they must pass.", flush=True)
    for only in sorted({each.only for each in chosen}):
        tests = tuple(sorted({test for each in chosen if each.only == only for test in each.tests}))
        code, said = judge((), tests, only, PATIENCE * len(tests))
        if code != 0:
            print(said)
            return 1
    with ThreadPoolExecutor(AT_ONCE) as pool:
        verdicts = []
        for verdict in pool.map(try_one, chosen):
            verdicts.append(verdict)
            mark = "killed  " if verdict.killed else "SURVIVED"
            print(f"{mark} {verdict.mutant.name:42} {verdict.seconds:5.1f} s  {verdict.how}", flush=True)
    alive = [verdict.mutant.name for verdict in verdicts if not verdict.killed]
    print(
        f"{len(verdicts) - len(alive)} of {len(verdicts)} killed" + (f"; alive: {', '.join(alive)}" if alive else "")
    )
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
