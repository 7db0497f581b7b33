"""The face for programs: the app, its tasks, and what can be done with jobs."""
