"""What a type checker sees of the public face."""
