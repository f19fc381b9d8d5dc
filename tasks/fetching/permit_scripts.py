"""The Lua scripts of `tasks.fetching.redis_permits`: Redis runs each as one step.

Times are whole microseconds of Redis' own clock.
"""

from __future__ import annotations

from tasks.fetching.pace import ALONE, RECENT_S

_NOW = """
local function clock(given)
  if given ~= '' then return tonumber(given) end
  local t = redis.call('TIME')
  return t[1] * 1000000 + t[2]
end
"""

# The share of a host by the paces of its addresses (`tasks.fetching.pace.host_share`), and that of one of them.
_SHARES = f"""
local RECENT = {RECENT_S * 1e6:.0f}

local function host_share(paces, now)
  local best = {{0, 0}}
  for i = 2, #paces, 2 do
    local _, faults, evidence, at = string.match(paces[i], '(%S+) (%S+) (%S+) (%S+)')
    evidence = tonumber(evidence or 0)
    if evidence > 0 and now - at < RECENT then best[evidence] = math.max(best[evidence], faults) end
  end
  if best[2] > 0 then return best[2] end
  if best[1] > 0 then return best[1] end
  return 1
end

local function address_share(own, faults, host)
  if faults < host then faults = math.max(faults, math.min({ALONE}, host)) end
  return own * faults
end

local function tell(key, address, pace, keep, now)
  redis.call('HSET', key, address, pace .. string.format(' %.0f', now))
  redis.call('EXPIRE', key, math.max(keep, redis.call('TTL', key)))
end
"""

# KEYS: granted times of the host (sorted set), next time of the address, paces of the host's addresses (hash).
# ARGV: spacing of the address, spacing of the host, how many, furthest from now, furthest from the first,
#       seconds until the keys expire, now (empty: Redis' clock), most debt, the address, its own share, its share by
#       faults, its evidence (`AddressPace.evidence`), seconds until its pace expires. Times are in microseconds.
# Returns: waits from now. Only one if the times of others push it back (a host at its limit). If it would be over
# the furthest, its wait is returned and nothing reserved.
# A time near others' is put in step with them (see `tasks.fetching.permits.next_in_step`).
RESERVE = (
    _NOW
    + _SHARES
    + """
local now = clock(ARGV[7])
local share, mine = 1, tonumber(ARGV[10]) * ARGV[11]
if mine < 1 or redis.call('EXISTS', KEYS[3]) == 1 then
  tell(KEYS[3], ARGV[9], table.concat({ARGV[10], ARGV[11], ARGV[12]}, ' '), ARGV[13], now)
  share = host_share(redis.call('HGETALL', KEYS[3]), now)
  mine = address_share(tonumber(ARGV[10]), tonumber(ARGV[11]), share)
end
local own, all = math.ceil(ARGV[1] / mine), math.ceil(ARGV[2] / share)
local count, debt, near = tonumber(ARGV[3]), tonumber(ARGV[8]), math.max(own, all) + all
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - near))
local ideal = math.max(now, tonumber(redis.call('GET', KEYS[2]) or now))
local taken = redis.call('ZRANGEBYSCORE', KEYS[1], string.format('%.0f', ideal - near), '+inf')
local i, before = 1, nil

local function free(at)
  while taken[i] and tonumber(taken[i]) - at < all do
    before = tonumber(taken[i])
    at = math.max(at, before + all)
    i = i + 1
  end
  return at
end

local function in_step(at)
  local after = taken[i] and tonumber(taken[i])
  if after and after - at < near then return after - math.floor((after - at) / all) * all end
  if before and at - before < near then return before + math.ceil((at - before) / all) * all end
  return at
end

local waits, first, last = {}, nil, nil
while #waits < count do
  local gap = free(ideal)
  local at = free(in_step(gap))
  if at - now > tonumber(ARGV[4]) then
    if #waits == 0 then return {at - now} end
    break
  end
  if first and at - first > tonumber(ARGV[5]) then break end
  if not first and gap > ideal then count = 1 end
  first, before = first or at, at
  local word = string.format('%.0f', at)
  redis.call('ZADD', KEYS[1], word, word)
  waits[#waits + 1] = at - now
  last = at - math.min(at - gap, debt)
  ideal = last + own
  if ideal < at + all then ideal = at + all end
end
local keep = math.ceil(ARGV[6] / share)
redis.call('EXPIRE', KEYS[1], keep)
redis.call('SET', KEYS[2], string.format('%.0f', last + own), 'EX', keep + math.ceil(own / 1000000))
return waits
"""
)

# KEYS: next time of the address, paces of the host's addresses (hash).
# ARGV: delay, seconds until the keys expire, now (empty: Redis' clock), the address.
PUSH_BACK = (
    _NOW
    + """
local now = clock(ARGV[3])
local at = math.max(now + tonumber(ARGV[1]), tonumber(redis.call('GET', KEYS[1]) or now))
local left = math.max(tonumber(ARGV[2]), redis.call('TTL', KEYS[1]))
redis.call('SET', KEYS[1], string.format('%.0f', at), 'EX', left)
redis.call('HSET', KEYS[2], 'rest ' .. ARGV[4], string.format('%.0f', at))
redis.call('EXPIRE', KEYS[2], math.max(left, redis.call('TTL', KEYS[2])))
"""
)

# KEYS: paces of the host's addresses (hash).
# ARGV: the address, its own share, its share by faults, its evidence, seconds until its pace expires, now.
TELL = (
    _NOW
    + _SHARES
    + """
tell(KEYS[1], ARGV[1], table.concat({ARGV[2], ARGV[3], ARGV[4]}, ' '), ARGV[5], clock(ARGV[6]))
"""
)

# KEYS: of each host, its granted times (sorted set) and the paces of its addresses (hash).
# ARGV: now (empty: Redis' clock).
# Returns, of each host with anything reserved or a pace: its place among the hosts, its share as text, microseconds
# until the last reserved time, 1 if an address is answered well, and of each address its name, share as text, and
# microseconds until its rest is over.
GRANTED = (
    _NOW
    + _SHARES
    + """
local now, found = clock(ARGV[1]), {}
for i = 1, #KEYS, 2 do
  local last = redis.call('ZREVRANGE', KEYS[i], 0, 0)[1]
  local paces = redis.call('HGETALL', KEYS[i + 1])
  if last or #paces > 0 then
    local share, rests = host_share(paces, now), {}
    for j = 1, #paces, 2 do
      local name = string.match(paces[j], '^rest (.*)')
      if name then rests[name] = math.max(0, paces[j + 1] - now) end
    end
    local host = {(i - 1) / 2, tostring(share), math.max(0, (last or now) - now), 0}
    for j = 1, #paces, 2 do
      local own, faults, evidence, at = string.match(paces[j + 1], '(%S+) (%S+) (%S+) (%S+)')
      if own then
        local name = paces[j]
        host[#host + 1] = {name, tostring(address_share(own, tonumber(faults), share)), rests[name] or 0}
        rests[name] = nil
        if evidence == '2' and tonumber(faults) == 1 and now - at < RECENT then host[4] = 1 end
      end
    end
    for name, wait in pairs(rests) do host[#host + 1] = {name, '1', wait} end
    found[#found + 1] = host
  end
end
return found
"""
)
