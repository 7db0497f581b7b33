"""Rubbish, handed in through every door there is."""
