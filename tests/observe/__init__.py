"""What is seen from outside: figures, metrics, logs, traces, probes."""
