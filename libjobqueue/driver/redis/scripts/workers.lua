-- SPDX-License-Identifier: MIT
--
-- Live workers of this queue. Answers per worker: id, end of the lease, hand-outs held here, started, lease.
local q, answer, held = KEYS[1], {}, {}
for _, p in ipairs(priorities(q)) do
    local pending = try('XPENDING', q .. ':p' .. p, GROUP)
    for _, one in ipairs(pending[4] or {}) do
        held[one[1]] = (held[one[1]] or 0) + one[2]
    end
end
local live = call('ZRANGEBYSCORE', q .. ':workers', '(' .. clock(), '+inf', 'WITHSCORES')
for i = 1, #live, 2 do
    local record = call('HMGET', q .. ':w:' .. live[i], 'started', 'lease')
    answer[#answer + 1] = {live[i], live[i + 1], held['w' .. live[i]] or 0, record[1] or 0, record[2] or 0}
end
return answer
