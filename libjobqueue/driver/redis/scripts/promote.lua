-- SPDX-License-Identifier: MIT
--
-- Delayed jobs of a queue whose time has come become ready in due order; kept results and dead jobs whose time is over go.
-- Many may be due at once, so that all but XADD is one command for all of them.
-- ARGV: at most so many. Answers how many.
local q, limit = KEYS[1], tonumber(ARGV[1])
local now = clock()
local due = call('ZRANGEBYSCORE', q .. ':delayed', '-inf', now, 'LIMIT', 0, limit)
local over = call('ZRANGEBYSCORE', q .. ':done', '-inf', now, 'LIMIT', 0, limit - #due)
local rest = #due > 0 and call('HMGET', q .. ':rest', unpack(due)) or {}
local placed, ensured = {}, {}
begin_writes(q)
if #due > 0 then
    call('ZREMRANGEBYRANK', q .. ':delayed', 0, #due - 1)
    call('HDEL', q .. ':rest', unpack(due))
end
for i = 1, #due do
    if rest[i] then
        local s, p, _, _, _, j = rest_parts(rest[i])
        if not ensured[p] then
            ensure_stream(q, p)
            ensured[p] = true
        end
        local entry = append(q, p, 'j', j, 's', s)
        placed[#placed + 1] = due[i]
        placed[#placed + 1] = p .. ':' .. entry
    end
end
if #placed > 0 then
    call('HSET', q .. ':ids', unpack(placed))
end
for i = 1, #over do
    call('ZREM', q .. ':done', over[i])
    call('ZREM', q .. ':dead', over[i])
    call('HDEL', q .. ':rest', over[i])
    forget_job(q, over[i], nil)
end
return #due + #over
