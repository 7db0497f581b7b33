"""What is kept of finished jobs: pruning, meters, samples."""
