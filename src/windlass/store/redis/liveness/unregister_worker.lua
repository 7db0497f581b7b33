-- unregister_worker: remove a worker. Request: its id.
--! scope: global
--! effect: writes
--! memory: any
--! uses: global_call, workers
local problem = check_store()
if problem then return problem end
allow_write_at_memory_limit()
forget_worker(request[1])
return 1
