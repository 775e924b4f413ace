-- SPDX-License-Identifier: MIT
--
-- Who a worker is, for people: this record decides nothing. KEYS[1]: the base of the prefix. ARGV: worker, lease, how
-- many hand-outs are running, host ('' = keep the description), queues, names, pid, processes. Answers: time, control.
local g, worker, lease, now = KEYS[1], ARGV[1], tonumber(ARGV[2]), clock()
local key = g .. ':w:' .. worker
call('ZREMRANGEBYSCORE', g .. ':workers', '-inf', now)
call('ZADD', g .. ':workers', now + lease, worker)
call('HSETNX', key, 'started', now)
call('HSET', key, 'lease', lease, 'running', ARGV[3])
if #ARGV > 3 then
    call('HSET', key, 'host', ARGV[4], 'queues', ARGV[5], 'names', ARGV[6], 'pid', ARGV[7], 'processes', ARGV[8])
end
call('PEXPIRE', key, lease + 3600000)
return {now, call('GET', g .. ':control') or 0}
