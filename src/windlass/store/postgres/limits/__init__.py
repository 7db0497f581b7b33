"""Concurrency keys, idempotency keys, rates, quotas, fairness, and the watermarks at which claims begin."""
