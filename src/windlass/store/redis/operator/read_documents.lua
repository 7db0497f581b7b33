-- read_documents: documents by kind and id, each a blob. Reply: version, creation time and data of each, or nothing,
-- up to a bound of text.
--! scope: global
--! effect: reads
--! uses: document
local MAX_TEXT = 500000
local now, answer, size = now_micros(), {}, 0
for i = 4, #ARGV do
  if size > MAX_TEXT then break end
  local version, created, _, data = read_document(ARGV[i], now)
  answer[i - 3] = version and {version, created, data} or {}
  size = size + (data and #data or 0)
end
return answer
