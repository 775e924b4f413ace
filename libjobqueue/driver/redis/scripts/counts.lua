-- SPDX-License-Identifier: MIT
--
-- Answers: time, ready, delayed, reserved, dead, since when the oldest ready job is ready, capacity (0: no limit).
local q, now = KEYS[1], clock()
local due = call('ZCOUNT', q .. ':delayed', '-inf', now)
local ready, delayed, reserved, oldest = due, call('ZCARD', q .. ':delayed') - due, 0, nil
local live = {}

local function is_live(consumer)
    if live[consumer] == nil then
        local worker = consumer:sub(1, 1) == 'w' and consumer:sub(2)
        live[consumer] = worker and tonumber(call('ZSCORE', q .. ':workers', worker) or 0) > now or false
    end
    return live[consumer]
end

local function older(at)
    oldest = (not oldest or at < oldest) and at or oldest
end

local function look_at(stream, entry)
    if not entry then
        return
    end
    local _, s = entry_at(stream, entry)
    local _, _, _, _, available = standing(s or '', entry, 0)
    older(available)
end

if due > 0 then
    older(tonumber(call('ZRANGE', q .. ':delayed', 0, 0, 'WITHSCORES')[2]))
end
for _, p in ipairs(priorities(q)) do
    local stream = q .. ':p' .. p
    local pending = try('XPENDING', stream, GROUP)
    if not pending.err then
        local out = 0
        for _, one in ipairs(pending[4] or {}) do
            if is_live(one[1]) then
                reserved = reserved + one[2]
                out = out + one[2]
            else
                look_at(stream, call('XPENDING', stream, GROUP, '-', '+', 1, one[1])[1][1])
            end
        end
        local length = call('XLEN', stream)
        ready = ready + length - out
        if length > pending[1] then
            local group = call('XINFO', 'GROUPS', stream)[1]
            for i = 1, #group, 2 do
                if group[i] == 'last-delivered-id' then
                    local first = call('XRANGE', stream, '(' .. group[i + 1], '+', 'COUNT', 1)[1]
                    look_at(stream, first and first[1])
                end
            end
        end
    end
end
return {now, ready, delayed, reserved, call('ZCARD', q .. ':dead'), oldest or 0,
    call('HGET', q .. ':limit', 'capacity') or 0}
