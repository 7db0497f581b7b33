"""The SQL of this store: one file per statement, read once."""

from functools import cache
from importlib import resources


@cache
def sql(name: str) -> str:
    """The text of `queries/<name>.sql`."""
    return resources.files(__package__).joinpath("queries", f"{name}.sql").read_text()
