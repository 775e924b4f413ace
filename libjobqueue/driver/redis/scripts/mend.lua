-- SPDX-License-Identifier: MIT
--
-- Puts dead jobs of this queue back or forgets them. ARGV: 0 retry, 1 forget; 1 = only say; ids. Answers per id: 0,
-- 1 = no dead job here, 2 = somebody holds its unique key, 3 = to be put back, but the time it is kept for is over.
local q, answer, now = KEYS[1], {}, clock()
local claimed = {}
for i = 3, #ARGV do
    local id = ARGV[i]
    local r = call('ZSCORE', q .. ':dead', id) and call('HGET', q .. ':rest', id)
    local result = r and 0 or 1
    if r then
        local s, p, _, _, _, j = rest_parts(r)
        local _, _, unique = identity(j, id)
        if ARGV[1] == '0' and tonumber(call('ZSCORE', q .. ':done', id) or now + 1) <= now then
            result = 3
        elseif ARGV[1] == '0' and unique and (claimed[unique] or call('HEXISTS', q .. ':unique', unique) == 1) then
            result = 2
        elseif ARGV[2] == '0' then
            call('ZREM', q .. ':dead', id)
            call('ZREM', q .. ':done', id)
            call('HDEL', q .. ':rest', id)
            if ARGV[1] == '1' then
                forget_job(q, id, nil)
            else
                local _, fence, enqueued = standing(s, '', 0)
                line_up(q, p, id, j, standing_pack(is_traced(s), 0, fence, enqueued, now, now, ZEROS))
                if unique then
                    call('HSET', q .. ':unique', unique, id)
                end
            end
        elseif unique then
            claimed[unique] = true
        end
    end
    answer[#answer + 1] = result
end
return answer
