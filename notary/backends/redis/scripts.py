"""Scripts in Lua that Redis runs whole or not at all.

A script reads and judges before it writes. Its first write is one that a full Redis refuses, or none is refused: so a
script never ends half way. Values travel as text, since Lua's numbers would lose digits.
"""

from hashlib import sha1
from typing import Final, NamedTuple


class Script(NamedTuple):
    """Its text, and the name by which Redis keeps it."""

    text: str
    digest: str


def _script(text: str) -> Script:
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


_STEPS: Final = """
local kinds = {}
local function perform(step)
  return kinds[step[1]](unpack(step, 2))
end
function kinds.proof(key, ttl)
  redis.call('SET', key, '1', 'PX', ttl)
end
function kinds.debit(key)
  if redis.call('EXISTS', key) == 0 then return end
  redis.call('HINCRBY', key, 'left', -1)
  return {'credit', key}
end
function kinds.credit(key)
  local kept = redis.call('HMGET', key, 'max', 'left')
  if not kept[1] or tonumber(kept[2]) >= tonumber(kept[1]) then return end
  redis.call('HINCRBY', key, 'left', 1)
  return {'debit', key}
end
function kinds.count(key, minute, change, oldest, ttl)
  local counted = tonumber(redis.call('HGET', key, minute) or '0')
  if tonumber(change) < 0 and counted < 1 then return end
  redis.call('HINCRBY', key, minute, change)
  redis.call('HINCRBY', key, 'v', 1)
  for _, field in ipairs(redis.call('HKEYS', key)) do
    if field ~= 'v' and tonumber(field) <= tonumber(oldest) then redis.call('HDEL', key, field) end
  end
  if ttl ~= 'none' then redis.call('PEXPIRE', key, ttl) end
  return {'count', key, minute, tostring(-tonumber(change)), oldest, ttl}
end
local function negated(text)
  if string.sub(text, 1, 1) == '-' then return string.sub(text, 2) end
  return text == '0' and '0' or '-' .. text
end
function kinds.cap(key, step, calls, oldest, ttl, ...)
  local given, undo = {...}, {'cap', key, step, negated(calls), oldest, ttl}
  if tonumber(calls) < 1 and tonumber(redis.call('HGET', key, step .. ':n') or '0') < 1 then return end
  redis.call('HINCRBY', key, step .. ':n', calls)
  for at = 1, #given, 2 do
    redis.call('HINCRBY', key, step .. ':' .. given[at], given[at + 1])
    undo[#undo + 1], undo[#undo + 2] = given[at], negated(given[at + 1])
  end
  redis.call('HINCRBY', key, 'v', 1)
  for _, field in ipairs(redis.call('HKEYS', key)) do
    local ends = string.match(field, '^(%d+):')
    if ends and tonumber(ends) <= tonumber(oldest) then redis.call('HDEL', key, field) end
  end
  if redis.call('PTTL', key) < tonumber(ttl) then redis.call('PEXPIRE', key, ttl) end
  return undo
end
function kinds.seen(key, member, score, now, ttl)
  local before = redis.call('ZSCORE', key, member)
  if not before or tonumber(before) < tonumber(score) then redis.call('ZADD', key, score, member) end
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  if redis.call('PTTL', key) < tonumber(ttl) then redis.call('PEXPIRE', key, ttl) end
end
function kinds.set(key, value, ttl)
  redis.call('SET', key, value, 'PX', ttl)
  return {'del', key}
end
function kinds.put(key, value, ttl)
  local before, left = redis.call('GET', key), redis.call('PTTL', key)
  redis.call('SET', key, value, 'PX', ttl)
  if before and left > 0 then return {'put', key, before, tostring(left)} end
  return {'del', key}
end
function kinds.del(key)
  local value, ttl = redis.call('GET', key), redis.call('PTTL', key)
  redis.call('DEL', key)
  if value and ttl > 0 then return {'set', key, value, tostring(ttl)} end
end
function kinds.drop(key)
  redis.call('DEL', key)
end
function kinds.keep(base, id, principal, ended_at, size, record)
  if redis.call('HEXISTS', base .. 'sizes', id) == 1 then kinds.unkeep(base, id) end
  redis.call('SET', base .. 'record:' .. id, record)
  redis.call('HSET', base .. 'sizes', id, size .. ' ' .. principal)
  redis.call('ZADD', base .. 'by-age', ended_at, id)
  redis.call('ZADD', base .. 'of:' .. principal, ended_at, id)
  redis.call('HINCRBY', base .. 'bytes', principal, size)
  return {'unkeep', base, id}
end
function kinds.unkeep(base, id)
  local size, principal = string.match(redis.call('HGET', base .. 'sizes', id) or '', '^(%d+) (.*)$')
  redis.call('DEL', base .. 'record:' .. id)
  redis.call('ZREM', base .. 'by-age', id)
  if not size then return end
  redis.call('HDEL', base .. 'sizes', id)
  redis.call('ZREM', base .. 'of:' .. principal, id)
  if redis.call('HINCRBY', base .. 'bytes', principal, '-' .. size) <= 0 then
    redis.call('HDEL', base .. 'bytes', principal)
  end
end
function kinds.zadd(key, member, score)
  redis.call('ZADD', key, score, member)
  return {'zrem', key, member}
end
function kinds.session(key, session, ends, ttl, now)
  local before = redis.call('ZSCORE', key, session)
  redis.call('ZADD', key, ends, session)
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  redis.call('PEXPIRE', key, ttl)
  if before then return {'zadd', key, session, before} end
  return {'zrem', key, session}
end
function kinds.zrem(key, member)
  local before, left = redis.call('ZSCORE', key, member), redis.call('PTTL', key)
  redis.call('ZREM', key, member)
  if before and left > 0 then return {'session', key, member, before, tostring(left), '-inf'} end
end
function kinds.hset(key, ...)
  local given, fields, undo = {...}, {}, {'hset', key}
  for at = 1, #given, 2 do fields[#fields + 1] = given[at] end
  local before = redis.call('EXISTS', key) == 1 and redis.call('HMGET', key, unpack(fields))
  redis.call('HSET', key, ...)
  if not before then return #fields == 1 and {'hdel', key, fields[1]} or {'drop', key} end
  for at, field in ipairs(fields) do
    if not before[at] then return {'hdel', key, field} end
    undo[#undo + 1], undo[#undo + 2] = field, before[at]
  end
  return undo
end
function kinds.hdel(key, field)
  local before = redis.call('HGET', key, field)
  redis.call('HDEL', key, field)
  if before then return {'hset', key, field, before} end
end
function kinds.expire(key, ttl)
  redis.call('PEXPIRE', key, ttl)
  return {'persist', key}
end
function kinds.lives(key, ttl)
  redis.call('PEXPIRE', key, ttl)
end
function kinds.persist(key)
  redis.call('PERSIST', key)
end
function kinds.grow(key)
  redis.call('INCR', key)
  return {'grow', key}
end
function kinds.epoch(key, epoch)
  redis.call('SET', key, epoch)
end
"""
"""A step makes one change and returns the one that undoes it, or nothing: a proof stays used, an epoch raised."""

_RECORD_MS: Final = 30 * 24 * 3600 * 1000
"""How long the record of a notary that does not come back is kept."""

APPLY: Final = _script(
    _STEPS
    + f"""
local asked = cjson.decode(ARGV[1])
local unit = KEYS[1]
local epoch = redis.call('GET', asked.epoch_key)
if redis.call('GET', asked.marker_key) ~= asked.marker or not epoch then return {{'lost'}} end
if redis.call('HGET', unit, 'fence') ~= asked.fence then return {{'fence'}} end
if epoch ~= asked.epoch then return {{'epoch', epoch}} end
local answer = {{'changed'}}
for _, key in ipairs(asked.proofs) do
  if redis.call('EXISTS', key) == 1 then answer[#answer + 1] = key end
end
local is_same = #answer == 1
for _, check in ipairs(asked.checks) do
  local value = redis.call(unpack(check, 2))
  local expected = check[1]
  if expected == cjson.null then expected = false end
  if value and value ~= expected and tostring(value) ~= expected or not value and expected then is_same = false end
end
if not is_same then return answer end
local undo = {{}}
for _, key in ipairs(asked.proofs) do perform({{'proof', key, asked.proof_ms}}) end
for _, step in ipairs(asked.steps) do
  local back = perform(step)
  if back then undo[#undo + 1] = back end
end
if #asked.proofs + #asked.steps > 0 then
  redis.call('HSET', unit, 'number', asked.number, 'undo', cjson.encode(undo))
  redis.call('PEXPIRE', unit, {_RECORD_MS})
end
return {{'done'}}
"""
)
"""Do what a unit has done, if everything that it has read is still so. KEYS: the notary's record."""

RECOVER: Final = _script(
    _STEPS
    + f"""
local unit, fence, last, doubt = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local record = redis.call('HMGET', unit, 'number', 'undo')
local said = 'kept'
redis.call('HSET', unit, 'fence', fence)
redis.call('PEXPIRE', unit, {_RECORD_MS})
local number = record[1] and tonumber(record[1])
if number and (number > last or number == doubt) then
  said = 'ahead'
  if (number == last + 1 or number == doubt) and record[2] then
    local undo = cjson.decode(record[2])
    for at = #undo, 1, -1 do perform(undo[at]) end
    redis.call('HSET', unit, 'number', ARGV[2])
    said = 'undone'
  end
end
redis.call('HDEL', unit, 'undo')
return {{said, record[1] or '0'}}
"""
)
"""Undo the last unit if the ledger, whose last one is ARGV[2], does not have it, or has another one of that number
(ARGV[3], if any). A script that was sent before and comes late finds another fence. The number of a
unit that the ledger had stays (FORGET_UNDO): a ledger that lacks it was put back, which each start reports until the
store is renewed (RENEW). Answers what it found: the number, too."""

FORGET_UNDO: Final = _script("""
if redis.call('HGET', KEYS[1], 'fence') == ARGV[1] and redis.call('HGET', KEYS[1], 'number') == ARGV[2] then
  redis.call('HDEL', KEYS[1], 'undo')
end
return 'done'
""")
"""The ledger has the unit."""

RENEW: Final = _script("""
local marker = redis.call('GET', KEYS[1])
local epoch = tonumber(redis.call('GET', KEYS[2]) or '0')
if not marker then
  marker = ARGV[1]
  redis.call('SET', KEYS[1], marker)
end
local current = math.max(epoch, tonumber(ARGV[2])) + 1
redis.call('SET', KEYS[2], string.format('%.0f', current))
redis.call('HDEL', KEYS[3], 'number', 'undo')
return {marker, string.format('%.0f', current)}
""")
"""Set a marker if there is none, and an epoch above all earlier ones; answer both. KEYS: marker, epoch, the notary's
record."""

BEGIN: Final = _script("""
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('SET', KEYS[1], ARGV[1])
  redis.call('SET', KEYS[2], ARGV[2])
end
return {redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2]) or '0'}
""")
"""The first start of a ledger: set marker and epoch if they are missing. KEYS: marker, epoch."""

SWEEP: Final = _script("""
local over = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
local many = redis.call('ZCARD', KEYS[1]) - tonumber(ARGV[2])
if #over == 0 and many > 0 then over = redis.call('ZRANGE', KEYS[1], 0, math.min(many, tonumber(ARGV[3])) - 1) end
for _, id in ipairs(over) do
  redis.call('ZREM', KEYS[1], id)
  redis.call('HDEL', KEYS[2], id)
end
return #over
""")
"""Take from the list of ended approvals what is over, or more than ARGV[2]; at most ARGV[3]."""

TRIM: Final = _script(
    _STEPS
    + """
local base, since, part, whole, most = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local function over()
  local id = redis.call('ZRANGEBYSCORE', base .. 'by-age', '-inf', since, 'LIMIT', 0, 1)[1]
  if id then return id end
  local sizes, sum = redis.call('HGETALL', base .. 'bytes'), 0
  for at = 1, #sizes, 2 do
    local size = tonumber(sizes[at + 1])
    if size > part then return redis.call('ZRANGE', base .. 'of:' .. sizes[at], 0, 0)[1] end
    sum = sum + size
  end
  if sum > whole then return redis.call('ZRANGE', base .. 'by-age', 0, 0)[1] end
end
for number = 0, most - 1 do
  local id = over()
  if not id then return number end
  kinds.unkeep(base, id)
end
return most
"""
)
"""Erase kept approvals: those that ended before ARGV[1], and the oldest while one principal has more than ARGV[2]
bytes, or all have more than ARGV[3]; at most ARGV[4]. KEYS: what their keys begin with."""
