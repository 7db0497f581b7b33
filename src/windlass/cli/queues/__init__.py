"""windlass queues, windlass workers."""
