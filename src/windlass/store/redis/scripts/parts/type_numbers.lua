-- type_numbers: the number of a type in this queue; a new one gets the next.
--! keys: types
local function type_number(name)
  local number = redis.call('HGET', K.types, name)
  if number then return tonumber(number) end
  number = redis.call('HLEN', K.types) + 1
  redis.call('HSET', K.types, name, number)
  return number
end
