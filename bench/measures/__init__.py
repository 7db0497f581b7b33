"""The measurements, one module each."""
