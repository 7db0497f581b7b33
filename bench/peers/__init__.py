"""Peers: scripts that stand alone, run by path in an environment that has the peer and not necessarily Windlass.

Each knows the same verbs, so that the harness measures every queue with the same code: `fill FOLDER JOBS`
enqueues jobs one by one, `bulk` by the peer's bulk verb; `drain FOLDER JOBS` works them off and ends, `threads` the
same with plain functions; each prints one line of JSON. A drain ends when the last job is durably completed, as the
peer's own tables say. `serve FOLDER` is an idle worker until killed; `produce FOLDER JOBS` enqueues jobs with
pauses, which leave stamps. Those that need a server find the address of an empty store in BENCH_STORE.
"""
