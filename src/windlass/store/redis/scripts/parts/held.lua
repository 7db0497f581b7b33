-- held: what a runner runs in this queue.
-- uses: record
-- keys: jobs held
local ID_SIZE = 36

-- Calls `with` for each job of this claim that runs still, with its id and record: `field` is runner and claim.
local function each_of_claim(field, ids, with)
  for at = 1, #ids, ID_SIZE do
    local id = string.sub(ids, at, at + ID_SIZE - 1)
    local value = redis.call('HGET', K.jobs, id)
    local r = value and read_record(value)
    if r and r.letter == RUNNING and r.runner .. ':' .. string.format('%.0f', r.claim) == field then with(id, r) end
  end
end

-- The same for all claims of a runner: there are as many fields as claims of which anything runs.
local function each_held(runner, with)
  local head = runner .. ':'
  for _, field in ipairs(redis.call('HKEYS', K.held)) do
    if string.sub(field, 1, #head) == head and not string.find(field, ':', #head + 1, true) then
      each_of_claim(field, redis.call('HGET', K.held, field), with)
    end
  end
end
