"""The worker: a supervisor that never runs user code, and runners that do."""
