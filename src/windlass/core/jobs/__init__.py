"""Jobs: records, outcomes, retries, dependencies."""
