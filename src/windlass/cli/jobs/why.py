"""windlass jobs why."""

from datetime import datetime

from rich.padding import Padding

from windlass.cli.jobs.filters import IdArgument
from windlass.cli.output.advice import Advice
from windlass.cli.output.as_json import print_json
from windlass.cli.output.tables import console, plain, styled
from windlass.cli.reach import AppOption, JsonOption, StoreOption, look
from windlass.core.moments import SECOND, show_duration
from windlass.core.status import WAITING
from windlass.core.why.explain import Why
from windlass.core.why.reason import Reason


def why(id_: IdArgument, store: StoreOption = None, app: AppOption = None, as_json: JsonOption = False) -> None:
    """Explain why a job does not run, what to do, and when it may start; for a running job, how it runs."""
    home = look(store, app)
    found = home.jobs.why(home.jobs.find(id_))
    if as_json:
        print_json(found)
    else:
        print_why(found, Advice(store, app))


def print_why(found: Why, advice: Advice) -> None:
    """Each reason as a sentence, most severe first, and under it what to do."""
    out = console()
    out.print(plain(found.type, "bold"), styled(found.status), found.id)
    for reason in found.reasons:
        _print_reason(reason, advice)
    if found.status in WAITING:
        out.print(plain(f"\n{_start(found)}"))


def print_first(found: Why, advice: Advice) -> None:
    """The main reason why a job waits, at the end of its details."""
    console().print("\n[bold]Why it waits[/]")
    _print_reason(found.first, advice)
    more = len(found.reasons) - 1
    if more:
        console().print(plain(f"  {more} more: {advice(f'windlass jobs why {found.id}')}", "dim"))


def _print_reason(reason: Reason, advice: Advice) -> None:
    out = console()
    out.print(Padding(plain(reason.text), (0, 0, 0, 2)))
    if reason.do:
        # In one piece, however long: it is there to be copied.
        out.print(plain(f"    -> {advice(reason.do)}", "bold"), soft_wrap=True)


def _start(found: Why) -> str:
    """When it may start, or why that is unknown."""
    basis = f" ({found.basis})" if found.basis else ""
    if found.estimated_start is None:
        soonest = f"; not before {_clock(found.earliest, found.at)}" if _is_later(found) else ""
        return f"No estimate of its start{soonest}{basis}."
    start, late = found.estimated_start, found.latest
    bounds = f"from {_clock(found.earliest, found.at)} to {_clock(late, found.at) if late else 'an unknown time'}"
    away = (start - found.at).total_seconds()
    when = f"in {show_duration(round(away * SECOND))}" if away >= 1 else "within a second"
    return f"Estimated start: {when}, {_clock(start, found.at)} UTC; {bounds}{basis}."


def _is_later(found: Why) -> bool:
    return found.earliest is not None and found.earliest > found.at


def _clock(moment: datetime | None, now: datetime) -> str:
    """The time of day; with the date if it is another day."""
    if moment is None:
        return "-"
    return moment.strftime("%H:%M:%S" if moment.date() == now.date() else "%Y-%m-%d %H:%M:%S")
