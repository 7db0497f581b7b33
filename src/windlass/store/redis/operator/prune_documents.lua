-- prune_documents: drop expired documents. Request: the maximum. Reply: how many.
--! scope: global
--! effect: writes
--! memory: any
--! uses: document
local problem = check_store()
if problem then return problem end
allow_write_at_memory_limit()
local members = redis.call('ZRANGEBYSCORE', K.document_ends, '-inf', now_micros(), 'LIMIT', 0, request[1])
for _, member in ipairs(members) do drop_document(member) end
return #members
