"""The bench measures and writes; how fast anything is, is no matter for tests."""
