"""What is measured, one module each."""
