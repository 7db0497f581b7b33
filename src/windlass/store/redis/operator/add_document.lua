-- add_document: add a document unless its id is taken. Request: how long it is kept (0: until it is deleted).
-- ARGV[4], ARGV[5]: kind and id, data. Reply: nothing, or version, creation time and data of the existing one.
--! scope: global
--! effect: grows
--! uses: document
local now, member = now_micros(), ARGV[4]
local version, created, _, data = read_document(member, now)
if version then return {version, created, data} end
local ends = request[1] > 0 and now + request[1] or 0
write_document(member, 1, now, ends, ARGV[5])
redis.call('ZADD', K.document_index, 0, member)
if ends > 0 then
  redis.call('ZADD', K.document_ends, ends, member)
else
  redis.call('ZREM', K.document_ends, member)
end
return {}
