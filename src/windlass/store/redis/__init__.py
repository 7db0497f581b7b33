"""The Redis store: every verb a script that takes n and gives n, and every queue in a hash slot of its own."""
