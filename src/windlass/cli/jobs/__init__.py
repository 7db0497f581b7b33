"""windlass jobs, windlass dead: look at jobs and act on them."""
