-- runner_jobs: record that runners have ended, so that they cannot claim here again. Request: runners, the maximum.
-- Reply: the time, 1 if there may be more, and {id, record, details} of jobs that they still hold: the caller puts
-- these back and calls again.
--! effect: writes
--! uses: claims, runners
local MAX_READ, MAX_TEXT = 1000, 1000000
local now = now_micros()
local runners, max_count = unpack(request, 1, 2)
local answer, read, text = {now, 0}, 0, 0

for _, runner in ipairs(runners) do
  redis.call('HDEL', K.leases, runner)
  remember_ended_runner(runner, now)
end

-- Add the jobs of a claim to the reply; those that do not fit are in the next one. Remove a claim without running jobs.
local function add_claim(member)
  local alive = 0
  read = read + each_of_claim(member, function(id, r, value)
    alive = alive + 1
    if #answer - 2 >= max_count or text > MAX_TEXT then
      answer[2] = 1
    else
      answer[#answer + 1] = {id, value, has(r.flags, HAS_DETAILS) and redis.call('HGET', K.details, id) or ''}
      text = text + #value
    end
  end)
  if alive == 0 then
    local _, _, head = claim_of(member)
    drop_claim(head)
  end
end

-- Add the jobs of all claims of a runner; a claim whose jobs are in the reply stays until they are put back.
local function add_claims_of(runner)
  local after = -1
  while answer[2] == 0 do
    local member = claims_of(runner, after, 1)[1]
    if not member then return end
    if read >= MAX_READ then answer[2] = 1 else add_claim(member) end
    after = select(2, claim_of(member))
  end
end

for _, runner in ipairs(runners) do add_claims_of(runner) end
return answer
