"""What a runner counts of itself: commits, round trips, profiles."""
