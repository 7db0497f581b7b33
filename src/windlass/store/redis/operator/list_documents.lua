-- list_documents: documents of a kind below a member, in descending order. Request: the maximum. ARGV[4], ARGV[5]:
-- where to begin and to end, exclusive. Reply: the last member that was read (empty: the end), and member, version,
-- creation time and data of each, up to a bound of text.
--! scope: global
--! effect: reads
--! uses: document
local MAX_TEXT = 500000
local now, size = now_micros(), 0
local members = redis.call('ZREVRANGEBYLEX', K.document_index, '(' .. ARGV[4], '(' .. ARGV[5], 'LIMIT', 0, request[1])
local answer = {#members == request[1] and members[#members] or ''}
for _, member in ipairs(members) do
  local version, created, _, data = read_document(member, now)
  if version then
    answer[#answer + 1] = {member, version, created, data}
    size = size + #data
  end
  if size > MAX_TEXT then
    answer[1] = member
    break
  end
end
return answer
