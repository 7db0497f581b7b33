"""A runner process: claims jobs, runs them in slots, settles them."""
