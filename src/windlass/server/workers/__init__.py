"""REST workers: workers in any language that claim and settle jobs over REST."""
