-- SPDX-License-Identifier: MIT
--
-- A job of this queue is to end. ARGV: id, the time in it (-1: none), about how many entries may be looked at, 1 soft
-- or 2 hard, reason, history entry, how long it is kept (0: for ever); if any, a job that follows its death (lib.lua). Answers 0 it waited and is dead,
-- 1 it is held and the wish is noted, 2 neither.
local q, id, now = KEYS[1], ARGV[1], clock()
local place = locate(q, id, tonumber(ARGV[2]), tonumber(ARGV[3]))
if not place then
    return 2
end

local function bury(given, unique, traced, p, j, deliveries, fence, enqueued, from, available, counters)
    if ARGV[6] ~= '' then
        traced = 1
        add_history(q, id, ARGV[6])
    end
    free_unique(q, unique, id)
    local s = standing_pack(traced, deliveries, fence, enqueued, from, available, counters)
    lay_down(q, id, given, 4, now, rest_pack(s, p, 4, tonumber(ARGV[5]), now, j))
    if ARGV[7] ~= '0' then
        call('ZADD', q .. ':done', now + ARGV[7], id)
    end
    if call('EXISTS', q .. ':awaited') == 1 then
        call('XADD', q .. ':ended', 'MAXLEN', '~', 1000, '*', place, id)
        call('PEXPIRE', q .. ':ended', 3600000)
    end
    if ARGV[8] then
        store_follow(8)
    end
    return 0
end

if place == 'r' then
    local r = call('HGET', q .. ':rest', id)
    if not r or r:byte(99) ~= 1 then
        return 2
    end
    local s, p, _, _, _, j = rest_parts(r)
    local _, flags, unique = identity(j, id)
    call('ZREM', q .. ':delayed', id)
    return bury(flags % 2 == 1, unique, is_traced(s), p, j, standing(s, '', 0))
end

local p, entry = place:match('^(%d):(.+)$')
local stream, field = q .. ':p' .. p, place
local j, s = entry_at(stream, entry)
if not j then
    return 2
end
local pending = try('XPENDING', stream, GROUP, entry, entry, 1)[1]
local consumer, count = pending and pending[2] or '', pending and pending[4] or 0
if consumer:sub(1, 1) == 'w' then
    begin_writes(q)
    call('HSET', q .. ':cancel', field, math.max(tonumber(ARGV[4]), wish(q, p, entry, s)))
    return 1
end
local _, flags, unique = identity(j, p .. '-' .. entry)
local deliveries, fence, enqueued, from, available, counters = standing(s, entry, count)
local mark, traced = call('HGET', q .. ':taken', field), is_traced(s)
call('XACK', stream, GROUP, entry)
call('XDEL', stream, entry)
call('HDEL', q .. ':taken', field)
local progress = call('HGET', q .. ':cancel', 'o' .. field)
if progress then
    call('HSET', q .. ':trace', 'o' .. id, progress)
end
call('HDEL', q .. ':cancel', field, 'o' .. field)
if mark then
    traced = 1
    counters = counters:sub(1, 8) .. mark:sub(1, 8) .. counters:sub(17, 24) .. mark:sub(9) .. counters:sub(33)
end
return bury(flags % 2 == 1, unique, traced, p, j, deliveries, fence, enqueued, from, available, counters)
