-- SPDX-License-Identifier: MIT
--
-- Keeps everything a worker holds. ARGV: worker, lease, running hand-outs (text), host ('' = keep the
-- description), queues, names, pid, processes. Answers: time, hand-outs held, 1 = jobs were taken from it.
local worker, lease = ARGV[1], tonumber(ARGV[2])
local key, consumer, now = G .. ':w:' .. worker, 'w' .. worker, clock()
local taken = call('HGET', key, 'taken')
local held = 0

local record = call('HGETALL', key)
for i = 1, #record, 2 do
    if record[i]:sub(1, 2) == 'q:' then
        local q = base(record[i]:sub(3))
        for _, p in ipairs(priorities(q)) do
            local pending = try('XPENDING', q .. ':p' .. p, GROUP)
            for _, one in ipairs(pending[4] or {}) do
                held = held + (one[1] == consumer and one[2] or 0)
            end
        end
    end
end
call('HDEL', key, 'taken')
call('ZADD', G .. ':alive', now + lease, worker)
call('HSETNX', key, 'started', now)
call('HSET', key, 'lease', lease, 'running', ARGV[3])
if #ARGV > 3 then
    call('HSET', key, 'host', ARGV[4], 'queues', ARGV[5], 'names', ARGV[6], 'pid', ARGV[7], 'processes', ARGV[8])
end
call('PERSIST', key)
return {now, held, taken and 1 or 0}
