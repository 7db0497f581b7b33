-- document: documents by kind and id: version, creation time, end (0: none), data (operator/documents.py).
local DOCUMENT_HEAD = '>I8i8i8'

-- Version, creation time, end and data of a document; nil if there is none, or it has expired.
local function read_document(member, now)
  local value = redis.call('HGET', K.documents, member)
  if not value then return nil end
  local version, created, ends, at = struct.unpack(DOCUMENT_HEAD, value)
  if ends > 0 and ends <= now then return nil end
  return version, created, ends, string.sub(value, at)
end

local function write_document(member, version, created, ends, data)
  redis.call('HSET', K.documents, member, struct.pack(DOCUMENT_HEAD, version, created, ends) .. data)
end

local function drop_document(member)
  redis.call('HDEL', K.documents, member)
  redis.call('ZREM', K.document_index, member)
  redis.call('ZREM', K.document_ends, member)
end
