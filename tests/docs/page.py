"""A page of the documentation, cut into its examples.

What a block is, is said by its language, and by a comment on the line before it:

    ```python, first line `# shop.py`     a file; `# shop.py, continued` is added to it
    ```python                             a script
    ```sh                                 commands for bash; variables hold for the rest of the page
    ```ini, toml, yaml, dockerfile        must be well-formed; `# /etc/…/name` or `# name` first
    ```text                               not run
    postgresql://localhost/shop           wherever it stands: an empty database of the page's own
    redis://localhost/0                   the same: a prefix of the page's own
    <!-- test: output -->                 the text is what the example before it printed; … stands for anything
    <!-- test: fails -->                  this example must fail
    <!-- test: background -->             it is started, and ended with SIGTERM after the page; it must exit with 0
    <!-- test: needs curl -->             not run, nor its output compared, where this program is not installed
    <!-- test: skip why not -->           not run
"""

import re
from pathlib import Path

import msgspec

RUN = ("python", "sh")
PARSED = ("ini", "toml", "yaml", "dockerfile")
SHOWN = ("text",)
MARKS = ("output", "fails", "background", "needs", "skip")

FENCE = re.compile(
    r"^(?:<!-- test: (?P<mark>\w+) ?(?P<reason>[^\n]*?) ?-->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
FILE = re.compile(r"# (?P<name>[\w./-]+\.\w+|[\w/]*Dockerfile)(?P<continued>, continued)?\n")
COMMENT = re.compile(r"^<!-- test:.*-->$", re.MULTILINE)


class Block(msgspec.Struct, frozen=True):
    """One example, and where it stands."""

    kind: str
    text: str
    line: int
    mark: str = ""
    reason: str = ""

    @property
    def file(self) -> str | None:
        """The name of the file that it is, if it is one."""
        found = FILE.match(self.text)
        return found["name"] if found else None

    @property
    def continues(self) -> bool:
        """Whether it is added to what the file has already."""
        found = FILE.match(self.text)
        return found is not None and found["continued"] is not None


def blocks(page: Path) -> list[Block]:
    """The examples of a page, in order; a mark that belongs to none is an error."""
    text = page.read_text()
    found = [
        Block(
            kind=each["kind"],
            text=each["text"],
            line=text.count("\n", 0, each.start("kind")) + 1,
            mark=each["mark"] or "",
            reason=each["reason"] or "",
        )
        for each in FENCE.finditer(text)
    ]
    assert len(COMMENT.findall(text)) == len([each for each in found if each.mark]), "a mark is before no block"
    return found
