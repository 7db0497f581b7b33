-- list_ids: ids of matching jobs in the order of ids, a bounded number at a time. Request: the id to continue
-- after (empty: the start), how many are wanted, how many may be read, whether the oldest come first, status
-- letters (empty: all); type, tenant, tag, parent, schedule, end of the id, and the id before which a list from the
-- oldest ends (each false: any); {field, text} of texts that fields must contain; allowed types (empty: any). Reply:
-- the last id (empty: the end), how many were read, 1 if children may be moving to another queue, and the matching
-- ids.
--! effect: reads
--! uses: record, claims, byte_order, lost_ids, few_ids
--! keys: queue, counts, jobs, details, ids, types, ready, due, by_status, waiting_for_key, parked, children, moving
local from, limit, max_count, oldest, letters, type, tenant, tag, parent, schedule, id_end, id_before, texts, types = unpack(request, 1, 14)
local MAX_READ, MAX_SEEN, MAX_BYTES, STEP = 400, 2000, 500000, 50
-- Up to this number, jobs of the wanted statuses are all read; if children are wanted, each must be looked up.
local MAX_FEW = parent and 200 or 1000

-- Ids after `from` in an index whose members are `head` and an id; all heads are of one length.
local function along(key, head, from, count)
  local first = from ~= '' and '(' .. head .. from
  local found
  if oldest then
    found = redis.call('ZRANGEBYLEX', key, first or '[' .. head, '(' .. head .. (id_before or 'g'), 'LIMIT', 0, count)
  else
    found = redis.call('ZREVRANGEBYLEX', key, first or '(' .. head .. 'g', '[' .. head, 'LIMIT', 0, count)
  end
  if head ~= '' then
    for i, member in ipairs(found) do found[i] = string.sub(member, #head + 1) end
  end
  return found
end

-- Usually the first twelve digits decide, which are read once as a number: comparing bytes is slow.
local heads = {}
local function head_of(id)
  if not heads[id] then heads[id] = tonumber(string.sub(id, 1, 8) .. string.sub(id, 10, 13), 16) or 0 end
  return heads[id]
end

local function before(a, b)
  if not oldest then a, b = b, a end
  local x, y = head_of(a), head_of(b)
  if x ~= y then return x < y end
  return comes_before(a, b)
end

local function sorted(ids, from, count)
  table.sort(ids, before)
  local kept = {}
  for _, id in ipairs(ids) do
    if #kept == count or oldest and id_before and not before(id, id_before) then break end
    if (from == '' or before(from, id)) and id ~= kept[#kept] then kept[#kept + 1] = id end
  end
  return kept
end

local function each_letter(act)
  for letter in string.gmatch(letters, '.') do
    if not act(letter) then return false end
  end
  return true
end

local function only_rare() return letters ~= '' and not string.find(letters, '[^fdx]') end

-- The children among these ids: cheaper than reading all children, most of which may have ended.
local function children(ids)
  local kept = {}
  for _, id in ipairs(ids) do
    if redis.call('ZSCORE', K.children, parent .. id) then kept[#kept + 1] = id end
  end
  return kept
end

-- A source that sorts these ids once, and returns them in portions.
local function portions(ids)
  local queued, given = sorted(ids, from, #ids), 0
  return function(_, count)
    local portion = {unpack(queued, given + 1, math.min(given + count, #queued))}
    given = given + #portion
    return portion
  end
end

local function among_rare(from, count)
  local ids = {}
  each_letter(function(letter)
    for _, id in ipairs(along(K.by_status, letter, from, count)) do ids[#ids + 1] = id end
    return true
  end)
  return sorted(ids, from, count)
end

local function source()
  local few = letters ~= '' and (parent or not only_rare()) and few_ids(letters, parent, MAX_FEW)
  if few then return portions(parent and children(few) or few) end
  if parent then return function(from, count) return along(K.children, parent, from, count) end end
  if only_rare() then return among_rare end
  return function(from, count) return along(K.ids, '', from, count) end
end

local number = type and tonumber(redis.call('HGET', K.types, type))
if type and not number then return {'', 0, 0} end
local numbers = #types > 0 and {}
for _, each in ipairs(numbers and redis.call('HMGET', K.types, unpack(types)) or {}) do
  if each then numbers[tonumber(each)] = true end
end
if numbers and not next(numbers) then return {'', 0, 0} end
local must_unpack = numbers or type or tenant or tag or schedule or #texts > 0
local must_read = must_unpack or letters ~= ''

local function has_tag(text)
  if not text then return false end
  local readable, tags = pcall(cjson.decode, text)
  if not readable or _G.type(tags) ~= 'table' then return false end
  for _, each in ipairs(tags) do if each == tag then return true end end
  return false
end

-- Whether the fields contain the texts. The payload is searched in the whole record, which contains it unchanged.
local function contains_all(id, value)
  local r
  for _, each in ipairs(texts) do
    local field, text = each[1], each[2]
    local inside = value
    if field ~= 'payload' then
      r = r or read_record(value)
      if field == 'type' then
        inside = fields_of(r)[TYPE]
      else
        inside = has(r.flags, HAS_DETAILS) and string.lower(redis.call('HGET', K.details, id) or '') or ''
      end
    end
    if not string.find(inside, text, 1, true) then return false end
  end
  return true
end

-- Whether a record matches. Only what the filter needs is read, as most records do not match.
local TAGS, SCHEDULE = 15, 17
local function matches(id, value)
  if letters ~= '' and not string.find(letters, string.sub(value, 1, 1), 1, true) then return false end
  if not must_unpack then return true end
  local _, _, _, _, _, _, _, length = struct.unpack(HEAD_A, value)
  local flags, type_number = struct.unpack('>I4I4', value, A_SIZE + length + 1)
  if number and type_number ~= number or numbers and not numbers[type_number] then return false end
  if tenant and not has(flags, HAS_TENANT) then return false end
  if #texts > 0 and not contains_all(id, value) then return false end
  if not tenant and not tag and not schedule then return true end
  local fields = fields_of(read_record(value))
  if tenant and fields[TENANT] ~= tenant or schedule and fields[SCHEDULE] ~= schedule then return false end
  return not tag or has_tag(fields[TAGS])
end

-- Whether a job has ended is cheaper to read in `drop_times` than in its record. So if only ended or only live children
-- are wanted, records of the others are not read; nor are those of ended ones, if few have an unwanted status.
local by_end = parent and letters ~= '' and not (string.find(letters, '[cdx]') and string.find(letters, '[^cdx]'))
local ended_wanted = by_end and string.find(letters, '[cdx]') ~= nil
local unwanted = string.gsub('dx', '[' .. (letters == '' and ' ' or letters) .. ']', '')
local others = ended_wanted and not must_unpack and string.find(letters, 'c', 1, true) and lost_ids(unwanted, MAX_FEW)

-- For each id its record; true: it matches; false: it does not.
local function looked_up(ids)
  if not by_end then return redis.call('HMGET', K.jobs, unpack(ids)) end
  local found, to_read, read_at = redis.call('ZMSCORE', K.drop_times, unpack(ids)), {}, {}
  for i, id in ipairs(ids) do
    found[i] = (found[i] ~= false) == ended_wanted and not (others and others[id])
    if found[i] and not others then to_read[#to_read + 1], read_at[#to_read + 1] = id, i end
  end
  for n, value in ipairs(#to_read > 0 and redis.call('HMGET', K.jobs, unpack(to_read)) or {}) do found[read_at[n]] = value end
  return found
end

local next_ids = source()
local answer, found, read, seen, bytes = {'', 0, parent and redis.call('EXISTS', K.moving) or 0}, 0, 0, 0, 0
local most = by_end and 500 or STEP
local ended, chunk = false, math.min(most, 4 * limit)  -- if one is wanted, it is usually among the first
while not ended and found < limit and seen < math.min(max_count, MAX_SEEN) and read < MAX_READ and bytes < MAX_BYTES do
  local step = math.min(must_read and chunk or id_end and 500 or math.min(limit, 1000), max_count - seen)
  local ids = next_ids(from, step)
  local values = must_read and #ids > 0 and looked_up(ids)
  ended, chunk = #ids < step, math.min(most, 2 * chunk)
  for i, id in ipairs(ids) do
    local value = values and values[i]
    local is_read = value and value ~= true
    if is_read then read, bytes = read + 1, bytes + #value end
    from, seen = id, seen + 1
    if (not id_end or string.sub(id, -#id_end) == id_end) and (not values or value and (not is_read or matches(id, value))) then
      found = found + 1
      answer[3 + found] = id
      if found == limit then
        ended = ended and i == #ids
        break
      end
    end
  end
end
answer[1], answer[2] = ended and '' or from, seen
return answer
