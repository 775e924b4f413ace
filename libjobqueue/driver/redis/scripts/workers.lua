-- SPDX-License-Identifier: MIT
--
-- Live workers. Answers per worker: id, end of the lease, hand-outs held, fields and values of its record.
local answer, held = {}, {}
local live = call('ZRANGEBYSCORE', G .. ':alive', '(' .. clock(), '+inf', 'WITHSCORES')
for _, name in ipairs(call('SMEMBERS', G .. ':queues')) do
    local q = base(name)
    for _, p in ipairs(priorities(q)) do
        local pending = try('XPENDING', q .. ':p' .. p, GROUP)
        for _, one in ipairs(pending[4] or {}) do
            held[one[1]] = (held[one[1]] or 0) + one[2]
        end
    end
end
for i = 1, #live, 2 do
    local record = call('HMGET', G .. ':w:' .. live[i], 'host', 'queues', 'names', 'pid', 'processes', 'started',
        'lease', 'running')
    answer[#answer + 1] = {live[i], live[i + 1], held['w' .. live[i]] or 0, unpack(record, 1, 8)}
end
return answer
