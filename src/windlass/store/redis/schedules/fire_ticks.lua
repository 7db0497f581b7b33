-- fire_ticks: enqueue the jobs of ticks, each once: the queue remembers the last plan of a schedule and the results
-- of its ticks. A repeated plan gets the same reply and changes nothing, nor does a late one. A tick gets no job if the
-- queue is closed or its key conflicts. Request: kinds and order of a batch, when the plan was read, {name, number of
-- the plan, number of earlier ticks, {kind, number, …}} of each schedule, and {kind, number, …} of jobs that other
-- queues know; ARGV[4] and on: blobs. Reply for each schedule: for each tick so far + (it has a job) or - (it has none);
-- empty if the queue knows a later plan. No reply: the plan must be read again.
--! effect: grows
--! uses: store_jobs
--! lazy: resolve_key_conflicts, transfer_keys, try_key_slot, assign_key_slots, tenant_member, link_parents, add_children
local MAX_AGE, PASSED = 3600000000, 0
local now = now_micros()
local kinds, order, asked, entries, elsewhere = unpack(request, 1, 5)
-- A queue forgets a removed schedule after a day; a caller that slept for longer must not act.
if now - asked > MAX_AGE then return false end

-- The results of this plan's ticks so far; nil if a later plan was here, or the results of earlier ticks are lost.
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
for e, kept in ipairs(redis.call('HMGET', K.fired_ticks, unpack(names))) do
  local entry = entries[e]
  local indexes = entry[4]
  marks[e] = marks_of(entry, kept)
  for at = 1, #indexes, 2 do
    local k, i = indexes[at], indexes[at + 1]
    local seen_to = not marks[e] or entry[3] + (at + 1) / 2 <= #marks[e]
    if seen_to or closed and not known[k][i] then known[k][i] = PASSED end
  end
end
local found = order and resolve_key_conflicts(kinds, order, known, now, true) or {existing = {}}
local blobs = {}
for i = 4, #ARGV do blobs[i - 3] = ARGV[i] end
store_jobs(request, blobs, now, now, known, found)

local function mark_of(k, i)
  if known[k][i] then return known[k][i] == PASSED and '-' or '+' end
  local existing = found.existing[k] and found.existing[k][i]
  return (not existing or existing == kinds[k][IDS][i]) and '+' or '-'
end

local answer, written = {}, {}
for e, entry in ipairs(entries) do
  answer[e] = ''
  if marks[e] then
    local indexes, all = entry[4], {marks[e]}
    for at = 2 * (#marks[e] - entry[3]) + 1, #indexes, 2 do all[#all + 1] = mark_of(indexes[at], indexes[at + 1]) end
    answer[e] = table.concat(all)
    written[#written + 1] = entry[1]
    written[#written + 1] = struct.pack('>I8', entry[2]) .. answer[e]
  end
end
if #written > 0 then redis.call('HSET', K.fired_ticks, unpack(written)) end
return answer
