"""The rules of Windlass, as pure functions and records: no I/O, no loop, no clock."""
