"""The coordinator: an elected holder of duties, inside any worker or alone."""
