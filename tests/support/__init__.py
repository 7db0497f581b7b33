"""What tests share: a clock to turn by hand, stores to run on, jobs in any status."""
