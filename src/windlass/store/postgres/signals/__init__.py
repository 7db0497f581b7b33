"""Wake-up hints and notifications of ended jobs."""
