-- unregister_worker: remove a worker. Request: its id.
--! scope: global
--! effect: writes
--! uses: workers
forget_worker(request[1])
return 1
