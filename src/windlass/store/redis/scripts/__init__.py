"""The loader of Lua scripts, and the parts that they share."""
