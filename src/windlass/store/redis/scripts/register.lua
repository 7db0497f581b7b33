-- register: children want to wait for jobs of this queue. The request is {parent, child, queue of the child (empty: this
-- one)} of each. Answers for each {letter, result}, without the result if that is gone; {} if there is no such job here.
-- uses: call, heirs
-- keys: queue
local problem = strange()
if problem then return problem end
local answer = {}
for i, entry in ipairs(request) do answer[i] = {stand_by(unpack(entry, 1, 3))} end
return answer
