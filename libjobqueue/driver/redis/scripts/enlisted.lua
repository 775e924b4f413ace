-- SPDX-License-Identifier: MIT
--
-- Live workers as they have enlisted. KEYS[1]: the base of the prefix. Answers per worker: id, end of the lease,
-- hand-outs held (unknown here: 0), started, lease, running, host, queues, names, pid, processes.
local g, answer = KEYS[1], {}
local live = call('ZRANGEBYSCORE', g .. ':workers', '(' .. clock(), '+inf', 'WITHSCORES')
for i = 1, #live, 2 do
    local record = call('HMGET', g .. ':w:' .. live[i], 'started', 'lease', 'running', 'host', 'queues', 'names', 'pid',
        'processes')
    answer[#answer + 1] = {live[i], live[i + 1], 0, unpack(record, 1, 8)}
end
return answer
