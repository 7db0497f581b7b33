-- known_ids: which of these ids this queue knows: stored, with a tombstone, or moving. Request: ids. Reply: the
-- known ones.
--! effect: reads
--! uses: known_ids
local answer = {}
for i, value in ipairs(known_ids(request, now_micros())) do
  if value then answer[#answer + 1] = request[i] end
end
return answer
