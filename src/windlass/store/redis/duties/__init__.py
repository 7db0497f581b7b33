"""The work of the coordinator: admit, age, expire, park, prune, tidy, repair."""
