"""Flow control: queues, rates, fairness, key slots."""
