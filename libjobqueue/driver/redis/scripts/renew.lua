-- SPDX-License-Identifier: MIT
--
-- Keeps what a worker holds in this queue; one that has no record and holds nothing gets none. ARGV: worker, lease,
-- running hand-outs (text). Answers: time, hand-outs held, 1 = jobs were taken from it, 1 = it has a record.
local q, worker, lease = KEYS[1], ARGV[1], tonumber(ARGV[2])
local key, consumer, now = q .. ':w:' .. worker, 'w' .. worker, clock()
local held = 0
for _, p in ipairs(priorities(q)) do
    local pending = try('XPENDING', q .. ':p' .. p, GROUP)
    for _, one in ipairs(pending[4] or {}) do
        held = held + (one[1] == consumer and one[2] or 0)
    end
end
if held == 0 and call('EXISTS', key) == 0 then
    return {now, 0, 0, 0}
end
local taken = call('HGET', key, 'taken')
call('HDEL', key, 'taken')
call('ZADD', q .. ':workers', now + lease, worker)
call('HSETNX', key, 'started', now)
call('HSET', key, 'lease', lease, 'running', ARGV[3])
call('PERSIST', key)
return {now, held, taken and 1 or 0, 1}
