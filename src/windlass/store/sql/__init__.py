"""What the two SQL stores share."""
