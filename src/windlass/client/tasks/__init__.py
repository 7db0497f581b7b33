"""Tasks: definitions, signatures, options, middleware, chains."""
