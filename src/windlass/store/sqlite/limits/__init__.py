"""Concurrency keys, idempotency keys, concurrency limits, rates, fairness."""
