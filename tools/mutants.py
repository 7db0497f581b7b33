"""Deliberate breakages, and the tests that must notice them: `make mutants`.

Each file in tools/mutants breaks one promise by a small edit. The edit is made in a copy of the tree, the tests that
it names are run there, and one must fail, which passes again without the edit. A mutant that survives, or whose edit
no longer applies, fails the run. A run that was interrupted goes on where it was, unless the source has changed.

python tools/mutants.py [NAME …]   those that are named, or all that are not known to be killed
"""

import contextlib
import hashlib
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
COPIED = ("src", "tests", "pyproject.toml")
LEFT_OUT = ("__pycache__", ".hypothesis")
KILLED = ROOT / ".pytest_cache" / "mutants.json"
"""The mutants that were killed, and by which source."""
PATIENCE = 180
"""Seconds after which tests that hang have noticed, too."""
AT_ONCE = 3
TESTS_FAILED = 1
"""pytest's exit code; any other one means that the tests could not be run, which proves nothing."""
FAILED = re.compile(r"^(?:FAILED|ERROR) (?P<test>\S+::.*?)(?: - .*)?$", re.MULTILINE)


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


class Tree:
    """A copy of the source and its tests, in which one mutant after the other is tried."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, root / name, ignore=shutil.ignore_patterns(*LEFT_OUT))
            else:
                shutil.copy(source, root / name)

    @contextlib.contextmanager
    def mutated(self, edits: tuple[Edit, ...]) -> Iterator[None]:
        """With these edits in it, and afterwards as it was."""
        before = {edit.file: (self.root / edit.file).read_text() for edit in edits}
        try:
            for edit in edits:
                edit.apply(self.root)
            self._forget_compiled(before)
            yield
        finally:
            for file, text in before.items():
                (self.root / file).write_text(text)
            self._forget_compiled(before)

    def _forget_compiled(self, files: dict[str, str]) -> None:
        """Two edits within a second may look alike to Python."""
        for path in (self.root / file for file in files):
            for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
                compiled.unlink()

    def test(self, tests: tuple[str, ...], only: str = "") -> tuple[int, str]:
        """pytest's exit code, and what it said, up to the first failure."""
        environment = {**os.environ, "PYTHONPATH": str(self.root / "src")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=line"]
        # A temporary folder of its own: several of these run at once.
        command += [f"--basetemp={self.root / 'temporary'}", *tests, *(["-k", only] if only else [])]
        try:
            ran = subprocess.run(
                command, cwd=self.root, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
            )
        except subprocess.TimeoutExpired:
            return TESTS_FAILED, f"hung for {PATIENCE:g} s"
        return ran.returncode, ran.stdout + ran.stderr


def try_one(mutant: Mutant, tree: Tree) -> Verdict:
    """Killed, if one of its tests fails, and passes without it."""
    start = time.monotonic()
    try:
        with tree.mutated(mutant.edits):
            code, said = tree.test(mutant.tests, mutant.only)
    except (ValueError, OSError) as error:
        return Verdict(mutant, False, f"does not apply: {error}", 0.0)
    if code != TESTS_FAILED:
        how = "no test fails" if code == 0 else f"the tests cannot be run: {said.strip()[-300:]}"
        return Verdict(mutant, False, how, time.monotonic() - start)
    found = FAILED.search(said)
    how = found["test"].rpartition("/")[2] if found else said.strip()[-100:]
    code, said = tree.test((found["test"],)) if found else tree.test(mutant.tests, mutant.only)
    if code != 0:
        how += f" fails without it too: {said.strip()[-300:]}"
    return Verdict(mutant, code == 0, how, time.monotonic() - start)


def try_all(chosen: list[Mutant]) -> Iterator[Verdict]:
    """Several at once, each in a tree of its own; the verdicts as they come."""
    trees: queue.SimpleQueue[Tree] = queue.SimpleQueue()

    def try_somewhere(mutant: Mutant) -> Verdict:
        tree = trees.get()
        try:
            return try_one(mutant, tree)
        finally:
            trees.put(tree)

    with tempfile.TemporaryDirectory(prefix="windlass-mutants-") as folder, ThreadPoolExecutor(AT_ONCE) as pool:
        for number in range(min(AT_ONCE, len(chosen))):
            trees.put(Tree(Path(folder, str(number))))
        for each in as_completed([pool.submit(try_somewhere, mutant) for mutant in chosen]):
            yield each.result()


def source_digest() -> str:
    """Of everything that is copied, and of the mutants."""
    folders = [ROOT / name for name in (*COPIED, "tools/mutants")]
    paths = [path for folder in folders for path in ([folder] if folder.is_file() else folder.rglob("*"))]
    digest = hashlib.sha256()
    for path in sorted(path for path in paths if path.is_file() and not set(LEFT_OUT) & set(path.parts)):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def killed_before(digest: str) -> list[str]:
    """The mutants of this source that an earlier run has seen killed."""
    known = json.loads(KILLED.read_text()) if KILLED.exists() else {}
    return list(known["killed"]) if known.get("source") == digest else []


def main(names: list[str]) -> int:
    """Every mutant that is not known to be killed, or those that are named."""
    everything, digest = mutants(), source_digest()
    killed = killed_before(digest)
    chosen = [each for each in everything if (each.name in names if names else each.name not in killed)]
    if names and not chosen:
        print(f"there is no mutant {' '.join(names)}; there are {', '.join(each.name for each in everything)}")
        return 2
    print(
        f"{len(chosen)} mutants" + ("" if names or not killed else f"; {len(killed)} were killed before"), flush=True
    )
    alive = []
    KILLED.parent.mkdir(exist_ok=True)
    for number, verdict in enumerate(try_all(chosen), 1):
        mark = "killed  " if verdict.killed else "SURVIVED"
        name = verdict.mutant.name
        print(f"{number:3}/{len(chosen)} {mark} {name:42} {verdict.seconds:5.1f} s  {verdict.how}", flush=True)
        if verdict.killed:
            killed.append(name)
            KILLED.write_text(json.dumps({"source": digest, "killed": killed}))
        else:
            alive.append(name)
    print(f"{len(chosen) - len(alive)} of {len(chosen)} killed" + (f"; alive: {', '.join(alive)}" if alive else ""))
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
