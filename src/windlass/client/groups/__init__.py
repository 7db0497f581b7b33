"""Groups of jobs: made by producers, watched by workers."""
