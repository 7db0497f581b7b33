"""The files of a history as one stream, in the order of the clock that all processes share."""

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

Line = dict[str, Any]


def read(folder: Path) -> Iterator[Line]:
    """Every line of every file, merged; a file is in order by itself."""
    return heapq.merge(*(_lines(path) for path in sorted(folder.glob("*.jsonl"))), key=lambda line: line["at"])


def _lines(path: Path) -> Iterator[Line]:
    # Threads of one process may stamp in one order and write in the other; sorting a whole file is the price.
    with path.open("rb") as file:
        lines = [{"file": path.name, **msgspec.json.decode(line)} for line in file]
    yield from sorted(lines, key=lambda line: line["at"])


def mentions(line: Line, job: str) -> bool:
    """Whether a line is about a job."""
    if line.get("job") == job:
        return True
    named = [*line.get("jobs", []), *(each for firing in line.get("firings", []) for each in firing["jobs"])]
    return any(job == (each["job"] if isinstance(each, dict) else each) for each in named)


def show(line: Line, zero: int) -> str:
    """A line for users: seconds since the beginning, who, and what."""
    facts = {name: value for name, value in line.items() if name not in ("at", "pid", "role", "what", "file")}
    return f"{(line['at'] - zero) / 1e9:9.4f} s  {line.get('role', '')} {line.get('pid', '')}: {line['what']} {facts}"
