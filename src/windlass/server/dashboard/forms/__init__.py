"""Forms of the dashboard: made from schemas, checked field by field, refused if the target has changed since."""
