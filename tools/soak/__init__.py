"""The soak: hours of jobs and faults on all stores side by side, after which nothing may have grown: `make soak`."""
