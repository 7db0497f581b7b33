-- merged_stream: members of a sorted set, merged from several ranges with a common prefix (head) each, in the
-- order of what follows the head: `local next_one = stream(key, heads, portion)`, then `local rest, head =
-- next_one()`; nil at the end. `portion` members are read at a time. Of a single range it may begin after a member.
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

-- Remove the first entry; the last one takes its place and moves down.
local function drop_first(heap, before)
  local size = #heap
  heap[1] = heap[size]
  heap[size] = nil
  if size > 2 then sift_down(heap, 1, before) end
end

local STRETCH_END = '\255\255\255'  -- above every sort_priority, rank and id

local function fill(stretch, key, portion)
  local ending = '(' .. stretch.head .. STRETCH_END
  stretch.members = redis.call('ZRANGEBYLEX', key, stretch.from, ending, 'LIMIT', 0, portion)
  stretch.at, stretch.more = 0, #stretch.members == portion
  if stretch.more then stretch.from = '(' .. stretch.members[portion] end
end

-- Advance to the next member of a stretch; nil after the last.
local function step(stretch, key, portion)
  if stretch.at == #stretch.members then
    if not stretch.more then return nil end
    fill(stretch, key, portion)
    if #stretch.members == 0 then return nil end
  end
  stretch.at = stretch.at + 1
  stretch.rest = string.sub(stretch.members[stretch.at], #stretch.head + 1)
  stretch.first, stretch.second = struct.unpack('>I6I6', stretch.rest)
  return stretch
end

-- The first twelve bytes, read as two numbers once, usually decide.
local function precedes(a, b)
  if a.first ~= b.first then return a.first < b.first end
  if a.second ~= b.second then return a.second < b.second end
  return comes_before(a.rest, b.rest)
end

local function stream(key, heads, portion, after)
  local stretches = {}
  for _, head in ipairs(heads) do
    local stretch = {head = head, from = after and '(' .. after or '[' .. head, members = {}, at = 0, more = true}
    if step(stretch, key, portion) then stretches[#stretches + 1] = stretch end
  end
  heapify(stretches, precedes)
  return function()
    local first = stretches[1]
    if not first then return nil end
    local rest = first.rest
    if step(first, key, portion) then sift_down(stretches, 1, precedes) else drop_first(stretches, precedes) end
    return rest, first.head
  end
end

-- How many to read at a time from each of several ranges, which contribute unequally.
local function portion_of(max_count, stretches) return math.min(max_count, math.ceil(2 * max_count / stretches) + 1) end
