-- order: which of two texts comes first, byte by byte, as sorted sets have them. Never ask Lua's own `<` for that: it goes
-- by the locale in which the server was started (LC_COLLATE), and is wrong about half of all places there.
local function comes_before(a, b)
  local size = math.min(#a, #b)
  local at = 1
  while at + 5 <= size do  -- six bytes are a number that is exact
    local x, y = struct.unpack('>I6', a, at), struct.unpack('>I6', b, at)
    if x ~= y then return x < y end
    at = at + 6
  end
  while at <= size do
    local x, y = string.byte(a, at), string.byte(b, at)
    if x ~= y then return x < y end
    at = at + 1
  end
  return #a < #b
end
