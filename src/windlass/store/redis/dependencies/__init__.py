"""Jobs that wait for other jobs, in the same queue or another one."""
