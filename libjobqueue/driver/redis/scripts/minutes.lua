-- SPDX-License-Identifier: MIT
--
-- The queue's minutes, oldest first. ARGV: from this one on. Answers the time, then per minute that has any: its number,
-- place and number of each count.
local q, now = KEYS[1], clock()
local last, answer = math.floor(now / 60000) + 1, {now}
for minute = math.max(tonumber(ARGV[1]), last - 1441), last do
    local counts = call('HGETALL', q .. ':m:' .. string.format('%d', minute))
    if counts[1] then
        table.insert(counts, 1, minute)
        answer[#answer + 1] = counts
    end
end
return answer
