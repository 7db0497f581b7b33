"""windlass check-worker: checks that a worker in any language follows the protocol."""

from typing import Annotated

import typer

from windlass.cli.output.as_json import print_json
from windlass.core.moments import SECOND


def check_worker(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="How the worker is started, after --.")],
    rule: Annotated[
        list[str] | None, typer.Option("--rule", help="Check only this rule; may be repeated.", metavar="NAME")
    ] = None,
    lease: Annotated[
        str, typer.Option("--lease", help="The server's lease; longer for a slow machine.", metavar="TIME")
    ] = "2s",
    json: Annotated[bool, typer.Option("--json", help="JSON for programs instead of lines.")] = False,
) -> None:
    """Check a worker over REST: windlass check-worker -- node worker.mjs

    Starts a server on a temporary store, and the worker with WINDLASS_SERVER, WINDLASS_TOKEN and QUEUES in its
    environment. The worker needs handlers for check.echo, check.fail and check.slow; those for check.progress and
    check.snooze are optional. Replies are lost, connections cut, the worker killed. Exit code 1 if a rule is broken.
    """
    from windlass.server.workers.service import check_lease
    from windlass.testing.workers.check import Verdict, rule_names
    from windlass.testing.workers.check import check_worker as check

    if unknown := sorted(set(rule or ()) - set(rule_names())):
        raise typer.BadParameter(f"--rule {unknown[0]}: there are {', '.join(rule_names())}")

    length = check_lease(lease) / SECOND

    def tell(verdict: Verdict) -> None:
        said = "skipped" if verdict.skipped else "passed" if verdict.passed else "FAILED"
        typer.echo(f"{said:8}{verdict.rule}: {verdict.text}")
        if verdict.problem is not None:
            typer.echo(f"        {verdict.problem}")

    verdicts = check(command, rule or (), (lambda verdict: None) if json else tell, length)
    if json:
        print_json(verdicts)
    raise typer.Exit(0 if all(verdict.passed for verdict in verdicts) else 1)
