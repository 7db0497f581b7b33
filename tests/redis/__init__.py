"""The Redis store on its own."""
