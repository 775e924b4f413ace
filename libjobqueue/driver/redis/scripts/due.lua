-- SPDX-License-Identifier: MIT
--
-- What maintenance has to do; reads only. ARGV: 1 = take back from expired workers, start of the server.
-- Answers: time, next due, queues with something due (list), expired workers (list).
local now, start = clock(), tonumber(ARGV[2])
local expired = {}
if ARGV[1] == '1' then
    for _, worker in ipairs(call('ZRANGEBYSCORE', G .. ':alive', '-inf', now, 'LIMIT', 0, 100)) do
        if lease_end(worker, start) <= now then
            expired[#expired + 1] = worker
        end
    end
end
return {now, next_due(ARGV[1] == '1' and start or nil),
    call('ZRANGEBYSCORE', G .. ':due', '-inf', now, 'LIMIT', 0, 100), expired}
