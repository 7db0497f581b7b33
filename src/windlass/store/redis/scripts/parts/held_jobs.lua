-- held_jobs: the jobs of a claim that are still running.
--! uses: record, claims
--! keys: jobs

-- Calls `with` for each job of this claim that runs still, with its id, record and value. Answers with how many were
-- read, and how much text they are.
local function each_of_claim(member, with)
  local runner, claim = claim_of(member)
  local ids = ids_of_claim(member)
  local text = 0
  for i, value in ipairs(redis.call('HMGET', K.jobs, unpack(ids))) do
    text = text + #(value or '')
    local r = value and read_record(value)
    if r and r.letter == RUNNING and r.runner == runner and r.claim == claim then with(ids[i], r, value) end
  end
  return #ids, text
end
