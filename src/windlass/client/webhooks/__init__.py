"""Webhooks in the store, and the delivery of an event over HTTP."""
