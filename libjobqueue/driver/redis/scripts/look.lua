-- SPDX-License-Identifier: MIT
--
-- Is a job of these queues ready, and from where is news to be awaited? ARGV: how many. Answers: 1 = ready, time,
-- when the next delayed job is due, then per stream: queue's place, priority (-1: its news), last entry.
local n, ready = tonumber(ARGV[1]), 0
local answer = {0, clock(), next_due(n)}

local function info(list, field)
    for i = 1, #list, 2 do
        if list[i] == field then
            return list[i + 1]
        end
    end
end

-- What was cancelled or cleared has left nothing behind the last one delivered.
local function has_behind(stream, delivered, last)
    return before(delivered, last) and #call('XRANGE', stream, '(' .. delivered, '+', 'COUNT', 1) > 0
end

for k = 1, n do
    local q = KEYS[k]
    local news = try('XREVRANGE', q .. ':wake', '+', '-', 'COUNT', 1)
    for _, v in ipairs({k - 1, -1, news[1] and news[1][1] or '0-0'}) do
        answer[#answer + 1] = v
    end
    for _, p in ipairs(priorities(q)) do
        local stream = q .. ':p' .. p
        local about = try('XINFO', 'STREAM', stream)
        if not about.err then
            local last, length = info(about, 'last-generated-id'), info(about, 'length')
            if last == LAST then -- closed
                local top = try('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
                last = call('HGET', q .. ':limit', p) or (top and top[1]) or '0-0'
            end
            local group = length > 0 and try('XINFO', 'GROUPS', stream)[1]
            if group and (has_behind(stream, info(group, 'last-delivered-id'), last) or
                #call('XPENDING', stream, GROUP, '-', '+', 1, BACK) > 0 or
                #call('XPENDING', stream, GROUP, '-', '+', 1, TAKEN) > 0) then
                ready = 1
            end
            for _, v in ipairs({k - 1, p, last}) do
                answer[#answer + 1] = v
            end
        end
    end
end
answer[1] = ready
return answer
