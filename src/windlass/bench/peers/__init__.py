"""Peers: scripts that stand alone, run by path in an environment that has the peer and not necessarily Windlass.

Each knows the same verbs, so that the harness measures every contestant with the same code:
`fill FOLDER JOBS` hands jobs in one by one, `drain FOLDER JOBS` works them off and ends, both print one line of JSON;
`serve FOLDER` is an idle worker until killed; `produce FOLDER JOBS` hands in jobs with pauses, which leave stamps.
"""
