"""What the store keeps in Redis: the key map, the packed record of a job and its versions."""
