"""Sizes on the command line, and what cannot be one."""

import pytest

from windlass import ConfigError
from windlass.cli.parse import parse_bytes
from windlass.worker.config import WorkerConfig


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512MB", 512 * 1024**2),
        ("512mb", 512 * 1024**2),
        ("2GB", 2 * 1024**3),
        ("1.5 GiB", 3 * 1024**3 // 2),
        ("64KiB", 65536),
        ("100", 100),
        ("100B", 100),
    ],
)
def test_a_size_is_read_as_people_write_it(text: str, size: int) -> None:
    assert parse_bytes(text, "--recycle-memory") == size


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "1 EB", "1e9", "inf", "512 megabytes", "٣MB", "9" * 400])
def test_what_is_no_size_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--recycle-memory .* should be a size such as 512MB or 2GB"):
        parse_bytes(text, "--recycle-memory")


def test_recycling_after_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="--recycle-jobs must be at least 1, not 0"):
        WorkerConfig(app="x", recycle_jobs=0).checked()
    with pytest.raises(ConfigError, match="--recycle-memory must be at least 1 byte, not 0"):
        WorkerConfig(app="x", recycle_memory=0).checked()
