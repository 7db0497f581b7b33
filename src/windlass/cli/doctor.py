"""windlass doctor: all findings, each with what to do."""

import asyncio
import sys
import time
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from windlass.cli.output.advice import Advice
from windlass.cli.output.as_json import print_json
from windlass.cli.output.tables import console, plain
from windlass.cli.reach import AppOption, JsonOption, OwnStoreOption, find, rule_of
from windlass.observe.alerts import examine_alerts
from windlass.observe.doctor import diagnose, totals
from windlass.store.doctor import Finding, Level
from windlass.store.open import examine, redact

SIGNS = {
    Level.OK: ("✓", "green"),
    Level.NOTE: ("·", "cyan"),
    Level.WARNING: ("!", "yellow"),
    Level.PROBLEM: ("✗", "bold red"),
}


def doctor(
    deep: Annotated[
        bool,
        typer.Option(
            "--deep", help="Check the whole store, every index entry and every idempotency key; may take minutes."
        ),
    ] = False,
    store: OwnStoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Examine a store and report everything that is wrong, with what to do; changes nothing.

    Exits with 0 if there is no problem (there may be warnings), with 1 if there is one.
    """
    home = find(store, app)
    address, rule = home.store, rule_of(home, store, app)
    found = asyncio.run(examine(address, deep=deep))
    findings = list(found.findings)
    if found.census is not None:
        findings += diagnose(found.census, time.time_ns() // 1000)
    findings.append(examine_alerts(found))
    healthy = not totals(findings)[Level.PROBLEM]
    if as_json:
        print_json({"store": redact(address), "found_by": rule, "healthy": healthy, "findings": findings})
    else:
        _print(f"{redact(address)} ({rule})", findings, Advice(store, app))
    raise typer.Exit(0 if healthy else 1)


def _print(title: str, findings: list[Finding], advice: Advice) -> None:
    out = console()
    out.print(plain(title, "bold"))
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for finding in findings:
        sign, style = SIGNS[finding.level]
        table.add_row(plain(_drawn(out, sign, finding.level), style), finding.check, plain(finding.says))
        if finding.advice is not None:
            table.add_row("", "", plain(f"{_drawn(out, '→', '->')} {advice(finding.advice)}", "dim"))
    out.print(table)
    out.print(plain(f"\n{_summary(findings)}", "bold"))


def _summary(findings: list[Finding]) -> str:
    count = totals(findings)
    warnings = _count(count[Level.WARNING], "warning")
    if not count[Level.PROBLEM]:
        checks = ", ".join(dict.fromkeys(finding.check for finding in findings))
        return f"no problems{f' ({warnings})' if count[Level.WARNING] else ''}; checked: {checks}"
    return f"{_count(count[Level.PROBLEM], 'problem')}, {warnings}"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")


def _drawn(out: Console, sign: str, word: str) -> str:
    """A sign, or a word where the terminal cannot draw it."""
    try:
        sign.encode(out.encoding or sys.getdefaultencoding())
    except UnicodeEncodeError:
        return word
    return sign
