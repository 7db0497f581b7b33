"""windlass schedules."""
