-- office: what every script begins with that works on what belongs to no queue.
-- uses: asked
-- keys: meta

-- Whether this is the store that the caller knows: nil, or the error to answer with.
local function strange()
  if redis.call('HGET', K.meta, 'store') == ARGV[1] then return nil end
  return redis.error_reply('WINDLASS_EMPTIED')
end
