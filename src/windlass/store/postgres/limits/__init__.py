"""Which pending jobs may run: keys, rates, quotas, fairness, and where claims begin."""
