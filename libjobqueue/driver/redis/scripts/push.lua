-- SPDX-License-Identifier: MIT
--
-- Stores a batch; each item is judged singly. ARGV: base of the prefix, '' = an id need not be looked for in other
-- queues; per item: base of its queue, priority, id, at, delay, unique key, j. Answers what was not stored: place, id
-- of the holder of the unique key ('' = the id exists).
local g, answer, ready, all = ARGV[1], {}, {}, nil

local function all_queues()
    all = {}
    for _, name in ipairs(call('SMEMBERS', g .. ':queues')) do
        local safe = name:gsub('[%%{}:]', function(c) return string.format('%%%02X', c:byte()) end)
        all[#all + 1] = g:sub(1, -2) .. ':' .. safe .. '}:ids'
        all[#all + 1] = g:sub(1, -2) .. ':' .. safe .. '}:hidden:ids'
    end
    return all
end

local function is_known(q, id)
    if call('HEXISTS', q .. ':ids', id) == 1 then
        return true
    end
    for _, ids in ipairs(g ~= '' and (all or all_queues()) or {}) do
        if call('HEXISTS', ids, id) == 1 then
            return true
        end
    end
    return false
end

for i = 2, #ARGV, 7 do
    local q, p, id, at, delay, unique, j = unpack(ARGV, i, i + 6)
    local taken = j:byte(2) % 2 == 1 and is_known(q, id)
    local holder = taken and '' or unique ~= '' and call('HGET', q .. ':unique', unique)
    if holder then
        answer[#answer + 1] = (i - 2) / 7
        answer[#answer + 1] = holder
    else
        if not ready[q .. p] then
            ensure_stream(q, p)
            ready[q .. p] = true
        end
        store_item(q, p, id, tonumber(at), tonumber(delay), unique, j)
    end
end
return answer
