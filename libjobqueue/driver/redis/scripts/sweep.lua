-- SPDX-License-Identifier: MIT
--
-- Hand-outs whose worker has no record (it was deleted by hand, or just before the worker read): they get one that
-- lapses unless the worker renews it. ARGV: its lease; per queue: name, hash. Answers how many workers.
local lost, now = {}, clock()
for i = 2, #ARGV, 2 do
    local q = base(ARGV[i])
    for _, p in ipairs(priorities(q)) do
        local pending = redis.pcall('XPENDING', q .. ':p' .. p, GROUP)
        for _, one in ipairs(pending[4] or {}) do
            local worker = one[1]:sub(1, 1) == 'w' and one[1]:sub(2)
            if worker and not call('ZSCORE', G .. ':alive', worker) then
                lost[#lost + 1] = {worker, ARGV[i], ARGV[i + 1]}
            end
        end
    end
end
for _, one in ipairs(lost) do
    begin_writes()
    call('ZADD', G .. ':alive', now + ARGV[1], one[1])
    call('HSET', G .. ':w:' .. one[1], 'q:' .. one[2], one[3])
    call('HSETNX', G .. ':w:' .. one[1], 'lease', ARGV[1])
    call('HSETNX', G .. ':w:' .. one[1], 'started', now)
    call('PERSIST', G .. ':w:' .. one[1])
end
return #lost
