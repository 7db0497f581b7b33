"""A progress line on standard error, for commands that take a while."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def progress(total: int) -> Iterator[tuple[Callable[[str], None], Callable[[], AbstractContextManager[None]]]]:
    """Two calls: one shows the current progress; the other completes a part and hides the line meanwhile."""
    if not sys.stderr.isatty():
        yield lambda text: typer.echo(f"… {text}", err=True), nullcontext
        return
    columns = (SpinnerColumn(), BarColumn(bar_width=20), MofNCompleteColumn(), TextColumn("{task.description}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=total)

        @contextmanager
        def complete() -> Iterator[None]:
            bar.advance(task)
            bar.stop()
            yield
            bar.start()

        yield lambda text: bar.update(task, description=text), complete
