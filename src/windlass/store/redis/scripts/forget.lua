-- forget: a worker signs off.
-- of the office
-- The request is its name.
-- uses: office, crowd
local problem = strange()
if problem then return problem end
forget_worker(request[1])
return 1
