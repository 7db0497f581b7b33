-- intake: new jobs come to a queue: who is known, who meets another's key, who is stored and where. An intake is a list
-- of kinds, jobs that are alike but for what is their own, and the order, {kind, number, …}, of those who may meet each
-- other: they have a key, or come twice. `blobs` are the fields of the kinds; intake.py tells more.
-- uses: record, index, hold, line, calloff, known
-- keys: queue jobs ids types ready pend lanes due expiring line slots tombs buried leaving keys windows children
local KIND_FLAGS, IDS, DIGESTS, LINES, ON_CONFLICT = 1, 10, 14, 15, 16
local ANSWER_EXISTING, REPLACE_WAITING, RAISE_CONFLICT = 0, 1, 2
local STORED, CLOSED, CONFLICT, OVERTAKEN = 0, 1, 2, 4

-- core.idempotency.judge, as far as it does not refuse: whether the newcomer replaces who has the key.
local function wins(letter, on_conflict)
  return on_conflict == REPLACE_WAITING and letter and waiting_letters[letter]
end

-- Who has the key, and the letter of that job if there is more of it than its window.
local function standing(digest, now)
  local holder = key_holder(digest, now)
  local value = holder and redis.call('HGET', K.jobs, holder)
  return holder, value and string.byte(value)
end

local function holders_of(kinds)
  local held = {}
  for _, kind in ipairs(kinds) do
    if kind[DIGESTS] then
      local ids = redis.call('HMGET', K.keys, unpack(kind[DIGESTS]))
      for i, digest in ipairs(kind[DIGESTS]) do
        if ids[i] then held[digest] = ids[i] end
      end
    end
  end
  return held
end

-- The contest for keys, as in store/contest.py: jobs meet who has them, and each other, in their order. What comes of it:
-- `stands`, by kind and number the id of the job that stands instead; `taken`, `replaced`; or `conflict`. What is late
-- was checked before, and can be refused no more.
local function contest(kinds, order, known, now, late)
  local held = holders_of(kinds)
  local found = {stands = {}, taken = {}, replaced = {}, contested = {}}
  local here, letters = {}, {}
  for k in ipairs(kinds) do found.stands[k] = {} end
  for at = 1, #order, 2 do
    local k, i = order[at], order[at + 1]
    local kind = kinds[k]
    local id, digest = kind[IDS][i], kind[DIGESTS] and kind[DIGESTS][i]
    local stands = (known[k][i] or here[id]) and id
    if not stands and digest and held[digest] then
      local holder, letter = held[digest], letters[digest]
      if not letter then holder, letter = standing(digest, now) end
      found.contested[digest] = true
      if holder == id then  -- its own window, after its id was forgotten: still the same job
        stands = id
      elseif holder and kind[ON_CONFLICT] == RAISE_CONFLICT and not late then
        found.conflict = {CONFLICT, k, i, holder}
        return found
      elseif holder and wins(letter, kind[ON_CONFLICT]) then
        found.replaced[#found.replaced + 1] = {holder, id}
      else
        stands = holder
      end
    end
    if stands then
      found.stands[k][i] = stands
    else
      here[id] = true
      if digest then
        held[digest], letters[digest] = id, PENDING  -- whatever it will be: it waits
        found.taken[digest] = id
      end
    end
  end
  return found
end

local function any_new(kinds, known, found)
  for k, kind in ipairs(kinds) do
    for i in ipairs(kind[IDS]) do
      if not known[k][i] and not (found.stands[k] and found.stands[k][i]) then return true end
    end
  end
  return false
end

-- Whether another job has the key of one that others of this very intake wait for: they must wait for that one.
local function is_overtaken(kinds, found)
  for k, kind in ipairs(kinds) do
    if has(kind[KIND_FLAGS], HEIRS) then
      for i, stands in pairs(found.stands[k]) do
        if stands ~= kind[IDS][i] then return true end
      end
    end
  end
  return false
end

-- What becomes of an intake, and nothing is changed: who is known, what the contest says, and the answer to give if all
-- of it is refused.
local function judge(intake, now, late)
  local kinds, order = intake[1], intake[2]
  local known = {}
  for k, kind in ipairs(kinds) do known[k] = known_ids(kind[IDS], now) end
  local found = order and contest(kinds, order, known, now, late) or {stands = {}}
  if found.conflict then return known, found, found.conflict end
  if order and not late and is_overtaken(kinds, found) then return known, found, {OVERTAKEN} end
  if not late and redis.call('HGET', K.queue, 'closed') == '1' and any_new(kinds, known, found) then
    return known, found, {CLOSED}
  end
  return known, found
end

-- The answer to an intake: kind, number and id of each job that stands instead of the one that was handed in; 0, 0 and the id
-- of each that must ask for its parents; 0, 1 and nothing if `follow` must be asked.
local function answer_of(intake, known, found, asking, stirred)
  local answer = {STORED}
  for k, kind in ipairs(intake[1]) do
    local stands = found.stands[k] or {}
    for i, id in ipairs(kind[IDS]) do
      local holder = stands[i] or known[k][i] and id
      if holder then
        local n = #answer
        answer[n + 1], answer[n + 2], answer[n + 3] = k, i, holder
      end
    end
  end
  for _, id in ipairs(asking or {}) do
    local n = #answer
    answer[n + 1], answer[n + 2], answer[n + 3] = 0, 0, id
  end
  if stirred then answer[#answer + 1], answer[#answer + 2], answer[#answer + 3] = 0, 1, '' end
  return answer
end
