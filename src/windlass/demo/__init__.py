"""The demo: a tour on a store of its own, with real processes, a killed runner and a recount."""
