"""`windlass coordinator`: the duties without running jobs, in a process of its own."""

import asyncio
import os
from functools import partial

from windlass.client.app import App
from windlass.coordinator.coordinator import Coordinator
from windlass.core.events import Emit
from windlass.core.ids import new_runner_id
from windlass.observe.calls import count_events, measure_calls
from windlass.observe.exposition import expose
from windlass.observe.families import process_families
from windlass.observe.figures import Figures
from windlass.observe.process import want_figures
from windlass.observe.store_gauges import store_families
from windlass.observe.systemd import READY, STOPPING, Systemd
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.records import ProcessRole
from windlass.worker.stop_signals import on_stop_signals
from windlass.worker.supervisor.health import Health
from windlass.worker.supervisor.side_tasks import resign


async def coordinate(home: App, health: tuple[str, int] | None, emit: Emit) -> None:
    """Do the duties until a signal stops the process; with `health`, probes and metrics are served there."""
    figures = None if health is None else want_figures()
    blobs, candidate = home.offload(), new_runner_id(os.urandom)
    store = measure_calls(open_store(home.store, opener=ProcessRole.COORDINATOR), figures)
    store.leases.hold_liveness_lock(candidate)
    holder = Coordinator(store, candidate, count_events(emit, figures), blobs=blobs)
    port = None
    if health is not None and figures is not None:
        port = Health(holder.is_ready, started=holder.is_ready, metrics=partial(_expose, store, figures))
        await port.start(*health)
    systemd = Systemd()
    systemd.notify(READY)
    watchdog = asyncio.create_task(systemd.keep_alive())
    duty = asyncio.create_task(holder.run())
    on_stop_signals(duty.cancel)
    try:
        await duty
    except asyncio.CancelledError:
        systemd.notify(STOPPING)
        await resign(holder)
    finally:
        watchdog.cancel()
        if port is not None:
            await port.stop()
        await store.close()


async def _expose(store: Store, figures: Figures, accept: str) -> tuple[str, bytes]:
    """The metrics of this process, and the gauges of the store."""
    return expose([*process_families(figures.read()), *await store_families(store)], accept)
