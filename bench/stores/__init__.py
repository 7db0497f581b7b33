"""The stores that are measured: how to make an empty one, its bare loops, how to read a drain back."""
