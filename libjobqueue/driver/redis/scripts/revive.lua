-- SPDX-License-Identifier: MIT
--
-- A worker that had lapsed has taken something in another queue: what it still holds here is kept, too. ARGV: worker,
-- lease. Answers 1 = it has a record that had lapsed.
local q, worker, now = KEYS[1], ARGV[1], clock()
local over = tonumber(call('ZSCORE', q .. ':workers', worker) or now + 1)
if over > now then
    return 0
end
begin_writes(q)
call('ZADD', q .. ':workers', now + ARGV[2], worker)
call('HSET', q .. ':w:' .. worker, 'lease', ARGV[2])
return 1
