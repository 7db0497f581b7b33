"""The parts of workers and coordinators, each by itself: no processes, and nothing waits for a clock."""
