-- SPDX-License-Identifier: MIT
--
-- Stores a batch; each item is judged singly. ARGV: base of the prefix, '' = an id need not be looked for in other
-- queues; per item: base of its queue, priority, id, at, delay, unique key, j. Answers what was not stored: place,
-- 1 = somebody (id) holds the unique key, 3 = the id exists, 4 = the queue is full; that id.
local answer, lists, i = {}, {}, 2

local function refuse(result, holder)
    for _, v in ipairs({(i - 2) / 7, result, holder}) do
        answer[#answer + 1] = v
    end
end

-- Ready ones with ids that the library made, into streams that are there and not closed.
while ARGV[i] do
    local q, p, id, at, delay, unique, j = unpack(ARGV, i, i + 6)
    local list = lists[q] or call('GET', q .. ':prios') or ''
    if j:byte(2) % 2 == 1 or at ~= '0' or delay ~= '0' or not list:find(p, 1, true) or list:find('c', 1, true) then
        break
    end
    local holder = unique ~= '' and call('HGET', q .. ':unique', unique)
    lists[q] = list
    if holder then
        refuse(1, holder)
    else
        if redis.pcall('XADD', q .. ':p' .. p, '*', 'j', j).err then
            break -- what follows mends it, or says why
        end
        if unique ~= '' then
            call('HSET', q .. ':unique', unique, id)
        end
    end
    i = i + 7
end
if not ARGV[i] then
    return answer
end

-- the rest of lib.lua
local ready = {}
for from = i, #ARGV, 7 do
    i = from
    local q, p, id, at, delay, unique, j = unpack(ARGV, i, i + 6)
    local holder = unique ~= '' and call('HGET', q .. ':unique', unique)
    if j:byte(2) % 2 == 1 and is_known(ARGV[1], q, id) then
        refuse(3, '')
    elseif holder then
        refuse(1, holder)
    else
        if not ready[q .. p] then
            ready[q .. p], lists[q] = true, ensure_stream(q, p)
        end
        if lists[q]:find('c', 1, true) and is_full(q, lists[q]) then
            refuse(4, '')
        else
            store_item(q, p, id, tonumber(at), tonumber(delay), unique, j)
        end
    end
end
return answer
