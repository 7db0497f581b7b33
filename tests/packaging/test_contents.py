"""What is in the wheel and in the source archive."""

import tarfile
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import PurePosixPath

import pytest

from tests.packaging.conftest import ROOT, Built
from windlass.version import __version__

SOURCES = ROOT / "src"
NEVER = {".venv", ".git", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"}


@pytest.fixture(scope="session")
def wheel(built: Built) -> dict[str, bytes]:
    """Every file of the wheel."""
    with zipfile.ZipFile(built.wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="session")
def source(built: Built) -> dict[str, bytes]:
    """Every file of the source archive, by its path in the tree."""
    found = {}
    with tarfile.open(built.source) as archive:
        for member in archive:
            if (file := archive.extractfile(member)) is not None:
                found[member.name.partition("/")[2]] = file.read()
    return found


@pytest.fixture(scope="session")
def metadata(wheel: dict[str, bytes]) -> Message:
    """What an index shows and what pip reads."""
    return Parser().parsestr(wheel[_about("METADATA")].decode())


def test_the_wheel_has_every_file_of_both_packages_and_nothing_else(wheel: dict[str, bytes]) -> None:
    files = {path.relative_to(SOURCES).as_posix(): path for path in SOURCES.rglob("*") if path.is_file()}
    expected = {name: path.read_bytes() for name, path in files.items() if path.suffix != ".pyc"}
    packed = {name: content for name, content in wheel.items() if not name.startswith(_about(""))}
    assert sorted(packed) == sorted(expected)
    assert packed == expected


def test_what_is_not_python_code_is_in_the_wheel_too(wheel: dict[str, bytes]) -> None:
    assert {
        "windlass/py.typed",
        "windlass/store/sqlite/migrations/0001_initial.sql",
        "windlass/store/sqlite/verbs/enqueue.sql",
        "windlass_pytest/__init__.py",
        _about("licenses/LICENSE"),
    } <= set(wheel)


def test_the_source_archive_has_what_people_need_to_change_and_test_it(source: dict[str, bytes]) -> None:
    needed = ["LICENSE", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "pyproject.toml"]
    needed += ["src/windlass/py.typed", "tests/conftest.py", "docs/guarantees.md", "tools/reference.py"]
    needed += ["bench/__main__.py", "bench/peers/huey.txt"]
    assert {name: source.get(name) for name in needed} == {name: (ROOT / name).read_bytes() for name in needed}


def test_the_source_archive_has_no_environment_no_cache_and_no_results(source: dict[str, bytes]) -> None:
    strange = [name for name in source if _never(PurePosixPath(name))]
    assert strange == []


def test_no_file_names_the_folder_that_it_was_built_in(wheel: dict[str, bytes], source: dict[str, bytes]) -> None:
    here = str(ROOT).encode()
    assert [name for name, content in {**wheel, **source}.items() if here in content] == []


def test_the_readme_is_the_description(metadata: Message) -> None:
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (ROOT / "README.md").read_text()


def test_the_metadata_say_what_it_is_and_where_it_runs(metadata: Message) -> None:
    single = ("Name", "Version", "License-Expression", "License-File", "Requires-Python")
    assert [metadata[name] for name in single] == ["windlass", __version__, "Apache-2.0", "LICENSE", ">=3.11"]
    versions = {text.rpartition(" ")[2] for text in metadata.get_all("Classifier", []) if "Python :: 3." in text}
    assert versions == {"3.11", "3.12", "3.13"}
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])


def test_the_extras_have_their_names_from_the_start(metadata: Message) -> None:
    assert set(metadata.get_all("Provides-Extra", [])) == {
        "postgres",
        "redis",
        "remote",
        "server",
        "metrics",
        "otel",
        "wsgi",
        "all",
    }


def test_the_entry_points_are_the_command_and_the_pytest_plugin(wheel: dict[str, bytes]) -> None:
    assert wheel[_about("entry_points.txt")].decode().split("\n\n") == [
        "[console_scripts]\nwindlass = windlass.cli.main:main",
        "[pytest11]\nwindlass = windlass_pytest\n",
    ]


def _about(name: str) -> str:
    return f"windlass-{__version__}.dist-info/{name}"


def _never(path: PurePosixPath) -> bool:
    made = path.is_relative_to("bench/out") or path.suffix in (".pyc", ".db", ".whl")
    return made or any(part in NEVER or part.startswith(".venv") for part in path.parts)
