-- SPDX-License-Identifier: MIT
--
-- Delayed jobs of a queue whose time has come become ready in due order; kept results whose time is over go.
-- Many may be due at once, so that all but XADD is one command for all of them.
-- KEYS[2]: base of the queue. ARGV: queue, at most so many. Answers how many.
local q, name, limit = KEYS[2], ARGV[1], tonumber(ARGV[2])
local now = clock()
local due = call('ZRANGEBYSCORE', q .. ':delayed', '-inf', now, 'LIMIT', 0, limit)
local over = call('ZRANGEBYSCORE', q .. ':done', '-inf', now, 'LIMIT', 0, limit - #due)
local rest = #due > 0 and call('HMGET', q .. ':rest', unpack(due)) or {}
local placed, ensured = {}, {}
begin_writes()
if #due > 0 then
    call('ZREM', q .. ':delayed', unpack(due))
    call('HDEL', q .. ':rest', unpack(due))
end
for i = 1, #due do
    if rest[i] then
        local s, p, _, _, _, j = rest_parts(rest[i])
        if not ensured[p] then
            ensure_stream(q, name, p)
            ensured[p] = true
        end
        local entry = call('XADD', q .. ':p' .. p, '*', 'j', j, 's', s)
        placed[#placed + 1] = due[i]
        placed[#placed + 1] = p .. ':' .. entry .. ' ' .. name
    end
end
if #placed > 0 then
    call('HSET', G .. ':ids', unpack(placed))
end
for i = 1, #over do
    call('ZREM', q .. ':done', over[i])
    call('HDEL', q .. ':rest', over[i])
    forget_job(q, over[i], nil)
end
local delayed = call('ZRANGE', q .. ':delayed', 0, 0, 'WITHSCORES')[2]
local done = call('ZRANGE', q .. ':done', 0, 0, 'WITHSCORES')[2]
if delayed or done then
    call('ZADD', G .. ':due', math.min(tonumber(delayed or done), tonumber(done or delayed)), name)
else
    call('ZREM', G .. ':due', name)
end
return #due + #over
