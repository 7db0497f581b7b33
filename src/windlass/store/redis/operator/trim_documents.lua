-- trim_documents: delete the lowest documents of a kind, if there are more than a number. Request: that number, and the
-- maximum to delete. ARGV[4], ARGV[5]: before and after all members of the kind. Reply: how many were deleted.
--! scope: global
--! effect: writes
--! uses: document
local first, last = '(' .. ARGV[4], '(' .. ARGV[5]
local over = redis.call('ZLEXCOUNT', K.document_index, first, last) - request[1]
if over <= 0 then return 0 end
local members = redis.call('ZRANGEBYLEX', K.document_index, first, last, 'LIMIT', 0, math.min(over, request[2]))
for _, member in ipairs(members) do drop_document(member) end
return #members
