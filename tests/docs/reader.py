"""A reader who does what a page says, in an empty folder."""

import configparser
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import yaml

from tests.docs.page import PARSED, Block
from tests.support.processes import MARK, Process, Processes, until
from tests.support.servers.places import postgres_place
from tests.support.servers.redis_places import redis_place

SECONDS = 120
PORT = "8322"
"""The health port of every page."""
DATABASE = "postgresql://localhost/shop"
"""The PostgreSQL database of every page."""
REDIS = "redis://localhost/0"
"""The Redis of every page."""
KEPT = ".exported"
"""What the reader's shell has exported so far."""
DOCKER = ("FROM", "WORKDIR", "COPY", "RUN", "USER", "STOPSIGNAL", "HEALTHCHECK", "CMD", "ENTRYPOINT", "ENV", "#")


class Reader:
    """Follows one page from top to bottom."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # A wide terminal: what is printed must not depend on where the tests run.
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._processes = Processes(folder, {"PATH": path, "COLUMNS": "200", "TERM": "dumb"})
        self._environment = self._processes.environment
        for name in [name for name in self._environment if name.startswith("WINDLASS_") and name != MARK]:
            del self._environment[name]
        self._port = str(free_port())
        self._printed: str | None = ""

    def follow(self, block: Block) -> None:
        """Do one block, and see whether it is true. Other ports and databases stand for those of the page."""
        text = block.text.replace(PORT, self._port)
        if DATABASE in text:
            text = text.replace(DATABASE, postgres_place(self._folder))
        if REDIS in text:
            text = text.replace(REDIS, redis_place(self._folder))
        block = msgspec.structs.replace(block, text=text)
        if block.mark == "output":
            if self._printed is None:
                return
            differences = unlike(block.text, self._printed)
            assert not differences, f"{differences}\n--- printed\n{self._printed}"
        elif block.mark == "needs" and shutil.which(block.reason) is None:
            self._printed = None
        elif block.kind in PARSED or block.file is not None:
            parse(block)
            self._write(block)
        elif block.kind == "python":
            self._run(block, [sys.executable, "-W", "error", "-c", block.text])
        elif block.kind == "sh":
            self._shell(block)

    def close(self) -> None:
        """End what was left running, in order."""
        try:
            for process in self._processes.started:
                _begun(process)
                process.send(signal.SIGTERM)
            assert [process.wait() for process in self._processes.started] == [0] * len(self._processes.started)
        finally:
            self._processes.end()

    def _write(self, block: Block) -> None:
        if block.file is None or block.file.startswith("/"):
            return
        path = self._folder / block.file
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text() if block.continues else ""
        path.write_text(before + block.text)

    def _shell(self, block: Block) -> None:
        exported = f"[ ! -e {KEPT} ] || source {KEPT}\n"
        if block.mark == "background":
            line = f"import os; os.execvp('bash', ['bash', '-c', {exported + 'exec ' + block.text!r}])"
            self._processes.start(f"line-{block.line}", "-c", line)
        else:
            keep = f"export -p | grep -v ' -[a-z]*r' > {KEPT}\n"
            self._run(block, ["bash", "-aeuo", "pipefail", "-c", exported + block.text + keep])

    def _run(self, block: Block, command: list[str]) -> None:
        # Into a file: what was left running in the background would keep a pipe open.
        log = self._folder / f".line-{block.line}"
        with log.open("w") as out:
            code = subprocess.run(
                command,
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=SECONDS,
                check=False,
            ).returncode
        self._printed = log.read_text()
        reported = f"{block.text}\n--- exit code {code}, printed\n{self._printed}"
        assert (code != 0) == (block.mark == "fails"), reported


def _begun(process: Process) -> None:
    """A signal before a worker listens to signals would end it out of order."""
    until(lambda: process.output or process.ended, "it has begun")


def free_port() -> int:
    """A port without a listener now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def parse(block: Block) -> None:
    """Settings must be well-formed; a service for systemd says what it must."""
    if block.kind == "toml":
        assert tomllib.loads(block.text)
    elif block.kind == "yaml":
        assert all(yaml.safe_load_all(block.text))
    elif block.kind == "ini":
        assert read_ini(block.text).sections()
    elif block.kind == "dockerfile":
        joined = block.text.replace("\\\n", " ")
        assert [line for line in joined.splitlines() if line and line.split()[0] not in DOCKER] == []


def read_ini(text: str) -> configparser.ConfigParser:
    """As systemd reads its units: case matters, % is a letter."""
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(text)
    return parser


def unlike(reported: str, printed: str) -> str:
    """The first line of the page that was not printed, in order; … stands for anything, spaces do not count."""
    lines = [" ".join(line.split()) for line in printed.splitlines() if line.strip()]
    skipping, at = False, 0
    for line in (" ".join(each.split()) for each in reported.splitlines() if each.strip()):
        if line == "…":
            skipping = True
            continue
        wanted = re.compile(".*".join(re.escape(part) for part in re.split(r" ?… ?", line)))
        rest = lines[at:] if skipping else lines[at : at + 1]
        hits = [number for number, each in enumerate(rest, at + 1) if wanted.fullmatch(each)]
        if not hits:
            return f"not printed: {line}"
        at, skipping = hits[0], False
    return "" if skipping or at == len(lines) else f"not on the page: {lines[at]}"
