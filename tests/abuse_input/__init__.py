"""Invalid input through every door there is."""
