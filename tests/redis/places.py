"""Whether every index of a queue holds just what the records say, neither less nor more."""

from windlass.store.redis.script import put_together
from windlass.store.redis.store import RedisStore

_BODY = """
-- uses: call, record, index
-- keys: queue counts jobs ready pend lanes due expiring held left line slots parked aside
local wrong, sizes, pend, counts, left = {}, {}, {}, {}, {}
local fair, laning = unpack(redis.call('HMGET', K.queue, 'fair', 'laning'))
local function must(name, id, member)
  sizes[name] = (sizes[name] or 0) + 1
  if not redis.call('ZSCORE', K[name], member) then wrong[#wrong + 1] = id .. ' is not in ' .. name end
end
local jobs = redis.call('HGETALL', K.jobs)
for i = 1, #jobs, 2 do
  local id, r = jobs[i], read_record(jobs[i + 1])
  local letter = string.char(r.letter)
  counts[letter] = (counts[letter] or 0) + 1
  if r.letter == PENDING then
    must('ready', id, ready_member(id, r))
    if fair == '1' and not laning then must('lanes', id, lane_member(id, r)) end
    pend[tostring(r.type)] = (pend[tostring(r.type)] or 0) + 1
  elseif r.letter == SCHEDULED or r.letter == FAILED or r.letter == ASIDE then
    must('due', id, id)
  end
  if r.letter == RUNNING then
    local field = r.runner .. ':' .. string.format('%.0f', r.claim)
    left[field] = (left[field] or 0) + 1
  end
  if r.letter == ASIDE then must('aside', id, aside_member(id, r)) end
  if r.letter == IN_LINE then must('line', id, line_member(id, r)) end
  if r.letter == PARKED then must('parked', id, parked_member(id, r)) end
  if r.slot >= 0 then must('slots', id, slot_member(id, r)) end
  if r.expires > 0 and waiting_letters[r.letter] then must('expiring', id, id) end
end
for _, name in ipairs({'ready', 'due', 'aside', 'line', 'parked', 'slots', 'expiring'}) do
  if redis.call('ZCARD', K[name]) ~= (sizes[name] or 0) then wrong[#wrong + 1] = 'too many in ' .. name end
end
if not laning and redis.call('ZCARD', K.lanes) ~= (sizes.lanes or 0) then wrong[#wrong + 1] = 'too many in lanes' end
local function compare(name, meant)
  local found = redis.call('HGETALL', K[name])
  for i = 1, #found, 2 do
    if tonumber(found[i + 1]) ~= (meant[found[i]] or 0) then wrong[#wrong + 1] = name .. ' of ' .. found[i] end
    meant[found[i]] = nil
  end
  for field in pairs(meant) do wrong[#wrong + 1] = name .. ' lacks ' .. field end
end
compare('pend', pend)
compare('counts', counts)
compare('left', left)
return wrong
"""


async def misplaced(store: RedisStore, queue: str = "default") -> list[str]:
    """What is wrong, in words."""
    server = store._access.server
    call = server.to_call(put_together("misplaced", _BODY), queue, 0, ())
    return [each.decode() for each in await server.wire.call(call, 10)]
