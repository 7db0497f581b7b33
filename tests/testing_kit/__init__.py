"""The testing kit, as a program's own tests use it."""
