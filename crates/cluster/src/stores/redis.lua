-- The queues, sessions and cells of unsnarl-cluster in Redis or Valkey. Every operation is one call of this script.
--
-- KEYS[1] is the namespace's prefix, with braces around the name, so that all its keys are in one slot.
--
--   PREFIX s:SESSION          what the client says of itself; expires with the session
--   PREFIX w:QUEUE            list: the tickets that wait, in their order
--   PREFIX h:QUEUE            hash: ticket -> "FENCE SINCE"; those that hold
--   PREFIX l:QUEUE            the limit of a semaphore that is in use
--   PREFIX f                  the last fence
--   PREFIX c:CELL             hash: v (version), d (text)
--   channel PREFIX n:CLIENT   what the client is told; channel PREFIX k:CELL: the cell has changed
--
-- Invariants: tickets are granted in the order of their list; a ticket whose session has ended is dropped before anything
-- is granted. A fence is higher than every earlier one even where the data was lost, as long as the server's clock
-- was not set back: it is never lower than that clock in microseconds, which a double holds exactly until 2255.

local prefix, operation = KEYS[1], ARGV[1]

local function parts(ticket)
  return string.match(ticket, '^([^.]+)%.([^.]+)%.[^.]+%.(.)$')
end

local function session_key(ticket)
  local _, session = parts(ticket)
  return prefix .. 's:' .. session
end

local function is_alive(ticket)
  return redis.call('EXISTS', session_key(ticket)) == 1
end

local function tell(ticket, word, more)
  local client = parts(ticket)
  redis.call('PUBLISH', prefix .. 'n:' .. client, word .. ' ' .. ticket .. ' ' .. more)
end

local function clock()
  local now = redis.call('TIME')
  return now[1] * 1000000 + now[2]
end

local function grant(queue, ticket)
  local now = clock()
  local fence = tonumber(redis.call('GET', prefix .. 'f') or '0') + 1
  if now > fence then fence = now end
  local text = string.format('%.0f', fence)
  redis.call('SET', prefix .. 'f', text)
  redis.call('HSET', prefix .. 'h:' .. queue, ticket, text .. ' ' .. string.format('%.0f', now / 1000))
  return text
end

-- Counts the living holders, and drops the others: exclusive ones, shared ones, milliseconds until one may be dead.
local function count(queue)
  local exclusive, shared, soonest = 0, 0, 60000
  for _, ticket in ipairs(redis.call('HKEYS', prefix .. 'h:' .. queue)) do
    local left = redis.call('PTTL', session_key(ticket))
    if left < 0 then
      redis.call('HDEL', prefix .. 'h:' .. queue, ticket)
    else
      local _, _, mode = parts(ticket)
      if mode == 'x' then exclusive = exclusive + 1 else shared = shared + 1 end
      if left < soonest then soonest = left end
    end
  end
  return exclusive, shared, soonest
end

-- Grants what can be granted; all but `own` are told.
local function settle(queue, own)
  local exclusive, shared, soonest = count(queue)
  local is_rw = string.sub(queue, 1, 1) == 'r'
  local limit = 1
  if string.sub(queue, 1, 1) == 's' then limit = tonumber(redis.call('GET', prefix .. 'l:' .. queue) or '1') end
  while true do
    local head = redis.call('LINDEX', prefix .. 'w:' .. queue, 0)
    if not head then break end
    if is_alive(head) then
      local _, _, mode = parts(head)
      local is_admitted
      if is_rw then
        is_admitted = exclusive == 0 and (mode == 's' or shared == 0)
      else
        is_admitted = exclusive + shared < limit
      end
      if not is_admitted then break end
      local fence = grant(queue, head)
      if head ~= own then tell(head, 'granted', fence) end
      if mode == 'x' then exclusive = exclusive + 1 else shared = shared + 1 end
    end
    redis.call('LPOP', prefix .. 'w:' .. queue)
  end
  return soonest
end

local function held(queue, ticket)
  local value = redis.call('HGET', prefix .. 'h:' .. queue, ticket)
  return value and string.match(value, '^%d+')
end

-- A semaphore's limit is its first user's until nobody uses it any more.
local function has_other_limit(queue, limit)
  if string.sub(queue, 1, 1) ~= 's' then return false end
  local key = prefix .. 'l:' .. queue
  local known = redis.call('GET', key)
  if known == limit then return false end
  local exclusive, shared = count(queue)
  if known and (exclusive + shared > 0 or redis.call('LLEN', prefix .. 'w:' .. queue) > 0) then return known end
  redis.call('SET', key, limit)
  return false
end

local operations = {}

function operations.open(session, ttl, client)
  redis.call('SET', prefix .. 's:' .. session, client, 'PX', ttl)
  return 1
end

function operations.renew(session, ttl)
  return redis.call('PEXPIRE', prefix .. 's:' .. session, ttl)
end

function operations.close(session)
  return redis.call('DEL', prefix .. 's:' .. session)
end

function operations.enqueue(queue, ticket, limit, waits)
  if not is_alive(ticket) then return { 'ended' } end
  local other = has_other_limit(queue, limit)
  if other then return { 'limit', other } end
  local fence = held(queue, ticket)
  if fence then return { 'granted', fence } end
  local waiting = prefix .. 'w:' .. queue
  if not redis.call('LPOS', waiting, ticket) then redis.call('RPUSH', waiting, ticket) end
  local soonest = settle(queue, ticket)
  fence = held(queue, ticket)
  if fence then return { 'granted', fence } end
  if waits == '0' then
    redis.call('LREM', waiting, 1, ticket)
    return { 'busy' }
  end
  return { 'queued', tostring(soonest), tostring(redis.call('LPOS', waiting, ticket)) }
end

function operations.leave(queue, ticket)
  if redis.call('HDEL', prefix .. 'h:' .. queue, ticket) == 0 then
    redis.call('LREM', prefix .. 'w:' .. queue, 1, ticket)
  end
  settle(queue)
  local is_idle = redis.call('EXISTS', prefix .. 'h:' .. queue, prefix .. 'w:' .. queue) == 0
  if is_idle then redis.call('DEL', prefix .. 'l:' .. queue) end
  return 1
end

operations['break'] = function(queue)
  local holders = redis.call('HKEYS', prefix .. 'h:' .. queue)
  for _, ticket in ipairs(holders) do
    redis.call('HDEL', prefix .. 'h:' .. queue, ticket)
    tell(ticket, 'broken', '-')
  end
  settle(queue)
  return #holders
end

function operations.read(cell)
  local found = redis.call('HMGET', prefix .. 'c:' .. cell, 'v', 'd')
  return { found[1] or '0', found[2] or '' }
end

function operations.swap(cell, version, text)
  local key = prefix .. 'c:' .. cell
  if (redis.call('HGET', key, 'v') or '0') ~= version then return 0 end
  redis.call('HSET', key, 'v', string.format('%.0f', tonumber(version) + 1), 'd', text)
  redis.call('PUBLISH', prefix .. 'k:' .. cell, 'cell ' .. cell .. ' -')
  return 1
end

function operations.alive(...)
  local found = {}
  for place, session in ipairs({ ... }) do found[place] = redis.call('EXISTS', prefix .. 's:' .. session) end
  return found
end

-- Drops what crashed clients have left in a queue, and returns a row for each ticket: ticket, fence or '', since or '', what its client says of itself or ''.
function operations.rows(queue)
  settle(queue)
  local rows = {}
  local function add(ticket, fence, since)
    rows[#rows + 1] = { ticket, fence, since, redis.call('GET', session_key(ticket)) or '' }
  end
  local holders = redis.call('HGETALL', prefix .. 'h:' .. queue)
  for place = 1, #holders, 2 do
    local fence, since = string.match(holders[place + 1], '^(%d+) (%d+)$')
    if is_alive(holders[place]) then add(holders[place], fence, since) end
  end
  for _, ticket in ipairs(redis.call('LRANGE', prefix .. 'w:' .. queue, 0, -1)) do
    if is_alive(ticket) then add(ticket, '', '') end
  end
  return rows
end

return operations[operation](unpack(ARGV, 2))
