"""Power cuts, full disks, clocks that jump: what a machine does to a queue."""
