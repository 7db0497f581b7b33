"""The client: what programs call, and what they are told."""
