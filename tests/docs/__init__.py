"""The examples of the documentation, run as a reader would run them."""
