"""What limits claims: concurrency keys, idempotency keys, rates, fairness."""
