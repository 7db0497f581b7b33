-- register_children: register children with parents in this queue. Request: {parent, child, queue of the child
-- (empty: this one)} of each. Reply, up to a bound of text: {letter, result}, without the result if
-- that was dropped; {}: no such job here.
--! effect: writes
--! uses: dependents
local MAX_TEXT = 500000
local answer, text = {}, 0
for i, entry in ipairs(request) do
  if text > MAX_TEXT then break end
  answer[i] = {register_dependent(unpack(entry, 1, 3))}
  text = text + #(answer[i][2] or '')
end
return answer
