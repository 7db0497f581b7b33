-- stream: members of a sorted set, from several stretches of it, in the order of what comes after the head of each.
--     local next_one = stream(key, heads, portion)
--     local rest, head = next_one()      -- nothing, if there are no more
-- A head is how all members of a stretch begin. `portion` of them are read at a time.
local STRETCH_END = '\255\255\255'  -- no urgency, rank or id goes on like this

local function fill(stretch, key, portion)
  local ending = '(' .. stretch.head .. STRETCH_END
  stretch.members = redis.call('ZRANGEBYLEX', key, stretch.from, ending, 'LIMIT', 0, portion)
  stretch.at, stretch.more = 0, #stretch.members == portion
  if stretch.more then stretch.from = '(' .. stretch.members[portion] end
end

-- Go on to the next member of a stretch; nil, if that was the last.
local function step(stretch, key, portion)
  if stretch.at == #stretch.members then
    if not stretch.more then return nil end
    fill(stretch, key, portion)
    if #stretch.members == 0 then return nil end
  end
  stretch.at = stretch.at + 1
  stretch.rest = string.sub(stretch.members[stretch.at], #stretch.head + 1)
  return stretch
end

local function stream(key, heads, portion)
  local stretches = {}
  for _, head in ipairs(heads) do
    local stretch = {head = head, from = '[' .. head, members = {}, at = 0, more = true}
    if step(stretch, key, portion) then stretches[#stretches + 1] = stretch end
  end
  return function()
    local first, place
    for i, stretch in ipairs(stretches) do
      if not first or stretch.rest < first.rest then first, place = stretch, i end
    end
    if not first then return nil end
    local rest = first.rest
    if not step(first, key, portion) then table.remove(stretches, place) end
    return rest, first.head
  end
end
