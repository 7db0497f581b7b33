-- replace_document: replace a document if it still has the given version. Request: version, and how long it is kept
-- from now on (0: its end stays). ARGV[4], ARGV[5]: kind and id, data. Reply: 1, or 0 if it has changed or is gone.
--! scope: global
--! effect: grows
--! uses: document
local now = now_micros()
local version, created, ends = read_document(ARGV[4], now)
if version ~= request[1] then return 0 end
if request[2] > 0 then
  ends = now + request[2]
  redis.call('ZADD', K.document_ends, ends, ARGV[4])
end
write_document(ARGV[4], version + 1, created, ends, ARGV[5])
return 1
