-- SPDX-License-Identifier: MIT
--
-- Stores a batch; each item is judged singly. ARGV per item: queue, priority, id, at, delay, unique key, j.
-- Answers what was not stored: place, id of the holder of the unique key ('' = the id exists).
local answer, bases, now, ready = {}, {}, nil, {}
for i = 1, #ARGV, 7 do
    local name, p, id, unique, j = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 5], ARGV[i + 6]
    local q = bases[name]
    if not q then
        q = base(name)
        bases[name] = q
    end
    local given = j:byte(2) % 2 == 1
    local taken = given and call('HEXISTS', G .. ':ids', id) == 1
    local holder = taken and '' or unique ~= '' and call('HGET', q .. ':unique', unique)
    if holder then
        answer[#answer + 1] = (i - 1) / 7
        answer[#answer + 1] = holder
    else
        local at, delay = tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4])
        if not ready[q .. p] then
            ensure_stream(q, name, p)
            ready[q .. p] = true
        end
        if at > 0 or delay > 0 then
            now = now or clock()
            at = at > 0 and at or now + delay
        end
        if at > (now or 0) then
            local s = standing_pack(0, 0, 0, now, now, at, ZEROS)
            lay_down(q, name, id, given, 1, at, rest_pack(s, p, 1, 0, 0, j))
        else
            local entry = call('XADD', q .. ':p' .. p, '*', 'j', j)
            if given then
                index(id, name, p .. ':' .. entry)
            end
        end
        if unique ~= '' then
            call('HSET', q .. ':unique', unique, id)
        end
    end
end
return answer
