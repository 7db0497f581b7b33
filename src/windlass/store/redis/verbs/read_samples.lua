-- read_samples: samples of a kind in a period, some at a time: of one queue, one type or all; also those without a
-- name. Request: kind, step, since, until, queue, type, the maximum. ARGV[4]: the field to continue after, empty
-- at first. Reply: the last field (empty: the end), and the value of each.
--! scope: global
--! effect: reads
--! uses: stats
local kind, step, since, ends, queue, type, max_count = unpack(request, 1, 7)

local function wanted(field)
  local named, typed = string.match(string.sub(field, STEP_HEAD_SIZE + 1), '^(.*)%z(.*)$')
  return (not queue or named == '' or named == queue) and (not type or typed == '' or typed == type)
end

local from = ARGV[4] == '' and '[' .. step_head(kind, step, since) or '(' .. ARGV[4]
local fields = redis.call('ZRANGEBYLEX', K.sample_index, from, '(' .. step_head(kind, step, ends), 'LIMIT', 0, max_count)
local answer = {#fields == max_count and fields[max_count] or ''}
if not queue and not type then
  local values = #fields > 0 and redis.call('HMGET', K.samples, unpack(fields)) or {}
  for i, value in ipairs(values) do answer[i + 1] = value end
  return answer
end
for _, field in ipairs(fields) do
  if wanted(field) then answer[#answer + 1] = redis.call('HGET', K.samples, field) end
end
return answer
