"""Groups: many jobs and what runs when they have ended. Pure."""
