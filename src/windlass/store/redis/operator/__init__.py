"""Reading and changing jobs and queues."""
