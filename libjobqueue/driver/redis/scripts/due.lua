-- SPDX-License-Identifier: MIT
--
-- What maintenance has to do; reads only. ARGV: how many queues, 1 = take back from expired workers, start of the
-- server. Answers: time, next due, then per queue 1 = something is due, expired workers (list).
local n, take_back, now, start = tonumber(ARGV[1]), ARGV[2] == '1', clock(), tonumber(ARGV[3])
local answer = {now, next_due(n, take_back and start or nil)}
for k = 1, n do
    local q, expired = KEYS[k], {}
    local due = call('ZCOUNT', q .. ':delayed', '-inf', now) + call('ZCOUNT', q .. ':done', '-inf', now)
    for _, worker in ipairs(take_back and call('ZRANGEBYSCORE', q .. ':workers', '-inf', now, 'LIMIT', 0, 100) or {}) do
        if lease_end(q, worker, start) <= now then
            expired[#expired + 1] = worker
        end
    end
    answer[#answer + 1] = due > 0 and 1 or 0
    answer[#answer + 1] = expired
end
return answer
