-- merged_stream: members of a sorted set from several ranges, each with a common prefix (head), merged in the order
-- of what follows the head: `local next_one = stream(key, heads, portion)`, then `local rest, head = next_one()`; nil
-- at the end. `portion` members are read at a time. A stream of a single range may begin after a given member.
--! uses: byte_order
-- A binary heap, ordered by a function `before`.
local function sift_down(heap, at, before)
  local entry, size = heap[at], #heap
  while true do
    local child = 2 * at
    if child > size then break end
    if child < size and before(heap[child + 1], heap[child]) then child = child + 1 end
    if not before(heap[child], entry) then break end
    heap[at], at = heap[child], child
  end
  heap[at] = entry
end

local function heapify(heap, before)
  for at = math.floor(#heap / 2), 1, -1 do sift_down(heap, at, before) end
end

-- Remove the first entry of a heap.
local function drop_first(heap, before)
  local size = #heap
  heap[1] = heap[size]
  heap[size] = nil
  if size > 2 then sift_down(heap, 1, before) end
end

local RANGE_END = '\255\255\255'  -- above every sort_priority, rank and id

local function fill(range, key, portion)
  local ending = '(' .. range.head .. RANGE_END
  range.members = redis.call('ZRANGEBYLEX', key, range.from, ending, 'LIMIT', 0, portion)
  range.at, range.more = 0, #range.members == portion
  if range.more then range.from = '(' .. range.members[portion] end
end

-- Advance to the next member of a range; nil after the last.
local function step(range, key, portion)
  if range.at == #range.members then
    if not range.more then return nil end
    fill(range, key, portion)
    if #range.members == 0 then return nil end
  end
  range.at = range.at + 1
  range.rest = string.sub(range.members[range.at], #range.head + 1)
  range.first, range.second = struct.unpack('>I6I6', range.rest)
  return range
end

-- Usually the first twelve bytes decide, which are read once as two numbers.
local function sorts_before(a, b)
  if a.first ~= b.first then return a.first < b.first end
  if a.second ~= b.second then return a.second < b.second end
  return comes_before(a.rest, b.rest)
end

local function stream(key, heads, portion, after)
  local ranges = {}
  for _, head in ipairs(heads) do
    local range = {head = head, from = after and '(' .. after or '[' .. head, members = {}, at = 0, more = true}
    if step(range, key, portion) then ranges[#ranges + 1] = range end
  end
  heapify(ranges, sorts_before)
  return function()
    local first = ranges[1]
    if not first then return nil end
    local rest = first.rest
    if step(first, key, portion) then sift_down(ranges, 1, sorts_before) else drop_first(ranges, sorts_before) end
    return rest, first.head
  end
end

-- How many members to read at a time from each of several ranges, of which some have more of the first than others.
local function portion_of(max_count, ranges) return math.min(max_count, math.ceil(2 * max_count / ranges) + 1) end
