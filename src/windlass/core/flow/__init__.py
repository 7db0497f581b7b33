"""Flow control: queues, rates, fairness, slots of concurrency keys."""
