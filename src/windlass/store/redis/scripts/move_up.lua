-- move_up: lines in which more could go on than one call moved go on. No request. Answers whether any is left.
-- uses: call, line
-- keys: queue stalled
local problem = strange()
if problem then return problem end
return go_on(the_time()) and 1 or 0
