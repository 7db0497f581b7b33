"""Forms of the dashboard: made from schemas, checked field by field, and safe between two operators."""
