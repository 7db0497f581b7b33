"""Torture: faults at the worst moments, and a checker that believes nothing."""
