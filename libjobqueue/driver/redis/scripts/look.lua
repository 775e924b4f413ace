-- SPDX-License-Identifier: MIT
--
-- Is a job of these queues ready, and from where is news to be awaited? ARGV: queues. Answers: 1 = ready, time,
-- when the next delayed job is due, last news, per stream: queue's place, priority, last entry.
local answer, ready = {0, clock(), next_due(), '0-0'}, 0
local news = try('XREVRANGE', G .. ':wake', '+', '-', 'COUNT', 1)
answer[4] = news[1] and news[1][1] or '0-0'

local function info(list, field)
    for i = 1, #list, 2 do
        if list[i] == field then
            return list[i + 1]
        end
    end
end

for k = 1, #ARGV do
    local q = base(ARGV[k])
    for _, p in ipairs(priorities(q)) do
        local stream = q .. ':p' .. p
        local about = try('XINFO', 'STREAM', stream)
        if not about.err then
            local last, length = info(about, 'last-generated-id'), info(about, 'length')
            local group = length > 0 and try('XINFO', 'GROUPS', stream)[1]
            if group and (before(info(group, 'last-delivered-id'), last) or
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
