"""The supervisor: leases, runner processes, registry, watch."""
