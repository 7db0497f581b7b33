-- desert: these runners are gone, and can claim nothing here from now on. The request is runners, how many jobs at most.
-- The answer is the store's time, 1 if there may be more (0: all was looked at), and id, record and more of jobs that they
-- hold still: whoever has put these back asks again as long as there may be more.
-- uses: call, held, gone
-- keys: queue more leases
local problem = strange()
if problem then return problem end
local MOST_READ = 1000
local now = the_time()
local runners, most = unpack(request, 1, 2)
local answer, read = {now, 0}, 0

for _, runner in ipairs(runners) do
  redis.call('HDEL', K.leases, runner)
  remember_gone(runner, now)
end

-- What does not fit into the answer is answered next time; a claim of which nothing runs goes.
local function give_up(member)
  local alive = 0
  read = read + each_of_claim(member, function(id, r, value)
    alive = alive + 1
    if #answer - 2 >= most then
      answer[2] = 1
    else
      answer[#answer + 1] = {id, value, has(r.flags, MORE) and redis.call('HGET', K.more, id) or ''}
    end
  end)
  if alive == 0 then
    local _, _, head = claim_of(member)
    drop_claim(head)
  end
end

-- One claim after the other: those of which jobs are answered stay until these are put back.
local function give_up_all(runner)
  local after = -1
  while answer[2] == 0 do
    local member = claims_of(runner, after, 1)[1]
    if not member then return end
    if read >= MOST_READ then answer[2] = 1 else give_up(member) end
    after = select(2, claim_of(member))
  end
end

for _, runner in ipairs(runners) do give_up_all(runner) end
return answer
