-- readable: a record as far as it can be read; nil if it was edited by hand.
--! uses: record
local function readable(value)
  local is_read, r = pcall(read_record, value)
  return is_read and pcall(fields_of, r) and r or nil
end
