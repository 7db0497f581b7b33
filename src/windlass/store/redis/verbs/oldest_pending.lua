-- oldest_pending: the rank of the oldest pending job, from the first of each type and priority. Reply: the time, and the
-- rank; 0: none.
--! effect: reads
--! uses: indexes
local MAX_PRIORITIES = 500
local reads, found = 0, nil

local function look_at_type(number)
  local from, past = '[' .. struct.pack('>I4', number), '(' .. struct.pack('>I4', number + 1)
  while reads < MAX_PRIORITIES do
    reads = reads + 1
    local head = redis.call('ZRANGEBYLEX', K.ready, from, past, 'LIMIT', 0, 1)[1]
    if not head then return end
    local _, sort_priority, rank = struct.unpack('>I4I2I8', head)
    if not found or rank < found then found = rank end
    if sort_priority == 65535 then return end
    from = '[' .. struct.pack('>I4I2', number, sort_priority + 1)
  end
end

for _, number in ipairs(pending_types()) do look_at_type(number) end
return {now_micros(), found or 0}
