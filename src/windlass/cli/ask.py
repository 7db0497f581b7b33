"""Questions before something that cannot be undone."""

import sys
from typing import Annotated

import typer

from windlass.errors import InvalidOption

YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def ask(action: str, yes: bool) -> None:
    """Ask whether to do it, such as "cancel 3 jobs in …"; without a terminal only --yes does it."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidOption("--yes", f"is needed without a terminal to ask on: this would {action}")
    typer.confirm(f"{action[0].upper()}{action[1:]}?", abort=True)
