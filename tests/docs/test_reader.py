"""The reader notices: an example that fails, another output, a worker that does not end in order."""

from pathlib import Path

import pytest

from tests.docs.page import Block, blocks
from tests.docs.reader import Reader, parse, unlike


def follow(folder: Path, page: str) -> int:
    """The number of blocks that are as the page says."""
    file = folder / "page.md"
    file.write_text(page)
    reader = Reader(folder)
    try:
        found = list(blocks(file))
        for block in found:
            reader.follow(block)
        return len(found)
    finally:
        reader.close()


def test_files_scripts_and_commands_share_a_folder(tmp_path: Path) -> None:
    page = "```python\n# a/shop.py\nX = 1\n```\n```python\n# a/shop.py, continued\nX += 1\n```\n"
    page += "```sh\nexport PYTHONPATH=a\n```\n```sh\npython -c 'import shop; print(shop.X)'\n```\n"
    assert follow(tmp_path, page + "<!-- test: output -->\n```text\n2\n```\n") == 5


@pytest.mark.parametrize(
    "page",
    [
        "```python\nimport nothing_of_this_name\n```\n",
        "```sh\nfalse\ntrue\n```\n",
        "```sh\nfalse | true\n```\n",
        "<!-- test: fails -->\n```sh\ntrue\n```\n",
        "```sh\necho one\n```\n<!-- test: output -->\n```text\ntwo\n```\n",
        "<!-- test: background -->\n```sh\ntail -f /etc/passwd\n```\n",
        "<!-- test: skip why -->\nand no block\n",
    ],
)
def test_what_is_not_true_is_noticed(tmp_path: Path, page: str) -> None:
    with pytest.raises(AssertionError):
        follow(tmp_path, page)


def test_what_needs_a_program_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    output = "<!-- test: output -->\n```text\nok\n```\n"
    assert follow(tmp_path, f"<!-- test: needs no-such-program -->\n```sh\nno-such-program\n```\n{output}") == 2
    assert follow(tmp_path, f"<!-- test: needs bash -->\n```sh\necho ok\n```\n{output}") == 2


@pytest.mark.parametrize(
    ("reported", "printed"),
    [
        ("a b", "a   b\n"),
        ("job … is dead", "job 123 is dead"),
        ("…\nlast", "first\nsecond\nlast"),
        ("first\n…", "first\nsecond"),
    ],
)
def test_output_may_be_shortened(reported: str, printed: str) -> None:
    assert unlike(reported, printed) == ""


@pytest.mark.parametrize(
    ("reported", "printed"), [("a", "a\nb"), ("a\nb", "a"), ("…\na", "b\nc"), ("b\n…\na", "a\nb"), ("a…c", "ab")]
)
def test_output_that_differs_is_reported(reported: str, printed: str) -> None:
    assert unlike(reported, printed)


@pytest.mark.parametrize(("kind", "text"), [("toml", "a ="), ("ini", "no section"), ("dockerfile", "PLEASE work")])
def test_settings_that_are_not_well_formed_are_noticed(kind: str, text: str) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 - each format has an error of its own
        parse(Block(kind=kind, text=text, line=1))
