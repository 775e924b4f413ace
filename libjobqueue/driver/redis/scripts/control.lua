-- SPDX-License-Identifier: MIT
--
-- What people ask of workers. KEYS[1]: the base of the prefix. ARGV: 0 read, 1 pause, 2 resume, 3 restart, 4 a
-- cancel was noted; queue ('' = all), for how long (0: until resumed). Answers: time, control, generation, then per
-- pause queue and end (0: none).
local g, what, name, ttl, now = KEYS[1], ARGV[1], ARGV[2], tonumber(ARGV[3]), clock()
if what ~= '0' then
    begin_writes(g)
    if what == '1' then
        call('HSET', g .. ':pauses', name, ttl > 0 and now + ttl or 0)
    elseif what == '2' then
        call('HDEL', g .. ':pauses', name)
    elseif what == '3' then
        call('INCR', g .. ':generation')
    end
    call('INCR', g .. ':control')
    wake(g, 'c')
end
local answer = {now, call('GET', g .. ':control') or 0, call('GET', g .. ':generation') or 0}
local pauses = call('HGETALL', g .. ':pauses')
for i = 1, #pauses, 2 do
    local over = tonumber(pauses[i + 1])
    if over == 0 or over > now then
        answer[#answer + 1] = pauses[i]
        answer[#answer + 1] = pauses[i + 1]
    elseif what ~= '0' then
        call('HDEL', g .. ':pauses', pauses[i])
    end
end
return answer
