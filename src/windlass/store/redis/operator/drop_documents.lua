-- drop_documents: delete documents by kind and id, each a blob. Reply: how many existed.
--! scope: global
--! effect: writes
--! uses: document
local now, count = now_micros(), 0
for i = 4, #ARGV do
  if read_document(ARGV[i], now) then count = count + 1 end
  drop_document(ARGV[i])
end
return count
