"""Running handlers: in tasks, threads and processes of their own."""
