-- replace_document: replace a document that still has a version. Request: version. ARGV[4], ARGV[5]: kind and id,
-- data. Reply: 1 or 0.
--! scope: global
--! effect: grows
--! uses: document
local version, created, ends = read_document(ARGV[4], now_micros())
if version ~= request[1] then return 0 end
write_document(ARGV[4], version + 1, created, ends, ARGV[5])
return 1
