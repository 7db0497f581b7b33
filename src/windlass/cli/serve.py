"""windlass serve."""

import sys
from typing import Annotated

import typer

from windlass.cli.reach import (
    AppArgument,
    BlobsOption,
    LogFormatOption,
    OwnStoreOption,
    WorkAppOption,
    named_app,
    reach,
)
from windlass.client.app import App
from windlass.client.runtime import loops
from windlass.core.moments import SECOND, parse_duration
from windlass.errors import ConfigError, WindlassError
from windlass.observe.logs import log_events


def _flag(name: str, text: str) -> object:
    return typer.Option(f"--{name}", envvar=f"WINDLASS_SERVE_{name.upper().replace('-', '_')}", help=text)


Proxies = Annotated[list[str] | None, _flag("proxy", "A proxy whose X-Forwarded-For is believed; may be repeated.")]
AllowedHosts = Annotated[
    list[str] | None,
    _flag("allowed-host", "A host name to serve, such as jobs.example.com; others get 421; may be repeated."),
]
Hidden = Annotated[
    list[str] | None,
    _flag("hide", "A field of payloads and results to hide: password, or card.number; may be repeated."),
]
Certificate = Annotated[str | None, _flag("tls-certificate", "A file with the certificate, for HTTPS.")]


def serve(
    context: typer.Context,
    app: AppArgument = None,
    option: WorkAppOption = None,
    host: Annotated[str, _flag("host", "Address to listen on; other than loopback only with tokens.")] = "127.0.0.1",
    port: Annotated[int, _flag("port", "The port to listen on.")] = 8321,
    rate: Annotated[str, _flag("rate", "Requests of each token, such as 1000/s.")] = "1000/s",
    proxy: Proxies = None,
    allowed_host: AllowedHosts = None,
    unready: Annotated[str, _flag("unready", "Time between a failing /readyz and the end of listening.")] = "1s",
    drain: Annotated[str, _flag("drain", "Time for running requests after SIGTERM.")] = "30s",
    environment: Annotated[str, _flag("environment", "A word on every page, such as production.")] = "",
    read_only: Annotated[bool, _flag("read-only", "Refuse every change, and show no buttons.")] = False,
    hide: Hidden = None,
    trace_url: Annotated[str, _flag("trace-url", "Link to a trace, such as https://traces/{trace}.")] = "",
    worker_lease: Annotated[str, _flag("worker-lease", "Silence after which a REST worker counts as dead.")] = "30s",
    tls_certificate: Certificate = None,
    tls_key: Annotated[str | None, _flag("tls-key", "A file with its key.")] = None,
    development: Annotated[bool, typer.Option("--development", hidden=True, help="For windlass dev.")] = False,
    store: OwnStoreOption = None,
    blobs: BlobsOption = None,
    log_format: LogFormatOption = "text",
) -> None:
    """Serve the dashboard and the REST API. Every call needs a token: windlass token create NAME --scope admin."""
    home = _home(store, named_app(context, app, option), blobs, read_only=read_only, development=development)
    log_events(format=log_format)
    loops.run(
        _serve(
            home,
            host=host,
            port=port,
            rate=rate,
            proxies=tuple(proxy or ()),
            hosts=tuple(allowed_host or ()),
            unready=parse_duration(unready, "--unready") / SECOND,
            drain=parse_duration(drain, "--drain") / SECOND,
            environment=environment[:40],
            read_only=read_only,
            hide=tuple(hide or ()),
            trace_url=trace_url,
            worker_lease=worker_lease,
            certificate=tls_certificate,
            key=tls_key,
            development=sys.stdin.readline().strip() if development else None,
        )
    )


def _home(store: str | None, app: str | None, blobs: str | None, *, read_only: bool, development: bool) -> App:
    try:
        return reach(store, app, blobs=blobs, make=not read_only, looks=read_only, through_server=False)
    except WindlassError:
        if development:
            raise typer.Exit(1) from None  # a save since it was started: `windlass dev` shows the error
        raise


async def _serve(home: App, **settings: object) -> None:
    try:
        from windlass.server.serve import ServerConfig, serve
    except ModuleNotFoundError as error:
        raise ConfigError(f"windlass serve needs {error.name}: pip install 'windlass[server]'") from None
    config = ServerConfig(**settings)  # type: ignore[arg-type]
    scheme = "https" if config.certificate else "http"
    shown = f"[{config.host}]" if ":" in config.host else config.host
    typer.echo(f"windlass serve: {scheme}://{shown}:{config.port}/", err=True)
    await serve(home, config)
