-- fire: jobs of ticks are handed in, each once: the queue remembers the last plan of a schedule that came here, and what
-- became of each of its ticks. What comes again, or late, is told that and changes nothing. A queue that is closed, or a
-- key that another job has, lets a tick pass without a job.
-- takes jobs in
-- The request is kinds and order of an intake, when the office was last asked, of each schedule {name, number of its plan,
-- how many of its ticks come before these, {kind, number, …} of these}, and {kind, number, …} of those that other
-- queues know. ARGV[4] and on are the intake's blobs. The answer for each schedule: + or - for each tick of the plan that was seen
-- to, by whether it has a job; empty if a later plan was here. No answer at all: the office must be asked again.
-- uses: call, store
-- rarely: contest pass_keys_on seat move_up lane_member link_all add_children
-- keys: queue ticks
local problem = strange()
if problem then return problem end
local LONGEST, PASSED = 3600000000, 0
local now = the_time()
local kinds, order, asked, entries, elsewhere = unpack(request, 1, 5)
-- What is remembered of a schedule that was removed is cleared away after a day; who has slept for so long must not act.
if now - asked > LONGEST then return false end

-- What became of the ticks of this plan so far; nothing if a later one was here, or what came before these is lost.
local function marks_of(entry, kept)
  local last = kept and struct.unpack('>I8', kept) or 0
  if last > entry[2] then return nil end
  local marks = last == entry[2] and string.sub(kept, 9) or ''
  return #marks >= entry[3] and marks or nil
end

local names, known, marks = {}, {}, {}
for k, kind in ipairs(kinds) do known[k] = known_ids(kind[IDS], now) end
for at = 1, #elsewhere, 2 do known[elsewhere[at]][elsewhere[at + 1]] = true end
for e, entry in ipairs(entries) do names[e] = entry[1] end
local closed = redis.call('HGET', K.queue, 'closed') == '1'
for e, kept in ipairs(redis.call('HMGET', K.ticks, unpack(names))) do
  local entry = entries[e]
  local places = entry[4]
  marks[e] = marks_of(entry, kept)
  for at = 1, #places, 2 do
    local k, i = places[at], places[at + 1]
    local seen_to = not marks[e] or entry[3] + (at + 1) / 2 <= #marks[e]
    if seen_to or closed and not known[k][i] then known[k][i] = PASSED end
  end
end
local found = order and contest(kinds, order, known, now, true) or {stands = {}}
local blobs = {}
for i = 4, #ARGV do blobs[i - 3] = ARGV[i] end
store(request, blobs, now, now, known, found)

local function mark_of(k, i)
  if known[k][i] then return known[k][i] == PASSED and '-' or '+' end
  local stands = found.stands[k] and found.stands[k][i]
  return (not stands or stands == kinds[k][IDS][i]) and '+' or '-'
end

local answer, written = {}, {}
for e, entry in ipairs(entries) do
  answer[e] = ''
  if marks[e] then
    local places, all = entry[4], {marks[e]}
    for at = 2 * (#marks[e] - entry[3]) + 1, #places, 2 do all[#all + 1] = mark_of(places[at], places[at + 1]) end
    answer[e] = table.concat(all)
    written[#written + 1] = entry[1]
    written[#written + 1] = struct.pack('>I8', entry[2]) .. answer[e]
  end
end
if #written > 0 then redis.call('HSET', K.ticks, unpack(written)) end
return answer
