-- prune_documents: drop expired documents. Request: the maximum. Reply: how many.
--! scope: global
--! effect: writes
--! uses: document
local members = redis.call('ZRANGEBYSCORE', K.document_ends, '-inf', now_micros(), 'LIMIT', 0, request[1])
for _, member in ipairs(members) do drop_document(member) end
return #members
