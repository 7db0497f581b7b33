"""How a process reaches Redis: addresses, wires, clusters, errors, rights and failpoints."""
