"""Webhooks: which events they select, how a delivery is signed, and where it may go. Pure."""
