-- byte_order: compare texts byte by byte, as sorted sets do. Lua's own `<` depends on the server's locale
-- (LC_COLLATE).
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
