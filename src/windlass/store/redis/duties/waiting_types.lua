-- waiting_types: names of the types with pending jobs, and of those with parked jobs.
--! effect: reads
--! uses: indexes

-- One seek for each type that has parked jobs.
local function parked_numbers()
  local numbers, from = {}, '-'
  while true do
    local member = redis.call('ZRANGEBYLEX', K.parked, from, '+', 'LIMIT', 0, 1)[1]
    if not member then return numbers end
    local number = struct.unpack('>I4', member)
    numbers[tostring(number)] = true
    from = '[' .. struct.pack('>I4', number + 1)
  end
end

local pending = {}
for _, number in ipairs(pending_types()) do pending[tostring(number)] = true end
local parked = parked_numbers()
if not next(pending) and not next(parked) then return {{}, {}} end
local answer = {{}, {}}
local names = redis.call('HGETALL', K.types)
for i = 1, #names, 2 do
  local name, number = names[i], names[i + 1]
  if pending[number] then answer[1][#answer[1] + 1] = name end
  if parked[number] then answer[2][#answer[2] + 1] = name end
end
return answer
