"""Listeners on events: logs, history; and the doctor's conclusions."""
