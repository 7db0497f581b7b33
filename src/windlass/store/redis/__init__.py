"""The Redis store: every verb a script that takes n and gives n, and every queue in a slot of its own."""
