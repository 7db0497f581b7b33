"""The demo: a tour on a store of its own, with real processes, a real kill and a recount."""
