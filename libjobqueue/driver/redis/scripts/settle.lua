-- SPDX-License-Identifier: MIT
--
-- Settles hand-outs of one queue. ARGV: consumer, 1 = say what is due next, number of streams; per
-- stream: priority, lowest and highest entry, count; per hand-out: entry, its delivery count, what becomes of
-- it: D done, F done and its id (index and trace go too), E done and there is still more, K done and kept
-- (time), L the same without its body, B back (delay), X dead (reason + 256 x how long it is kept), G given back, T given
-- back with its mark; behind a number counters, error, history and outcome. It stays where it is: U its unique key is
-- free, P it has come so far (outcome). Then, for jobs that follow such an end: the place of the hand-out, and the job (lib.lua).
-- Answers the time, what is due next, and the places of those that are not current.
local consumer, q = ARGV[1], KEYS[1]
local answer, at, place = {0, 0}, 4, 0
local gone, plans, traces, ids, refused = {}, {}, {}, {}, {}
local noted, wishes, awaited, ends = call('EXISTS', q .. ':cancel', q .. ':awaited'), {}, false, {}
if noted > 0 then
    awaited = call('EXISTS', q .. ':awaited') == 1
end

-- entry => delivery count, of what the consumer holds between two entries
local function owned(stream, low, high, n)
    local mine, from = {}, low
    while true do
        local page = try('XPENDING', stream, GROUP, from, high, n + 100, consumer)
        if page.err then
            return mine
        end
        for k = 1, #page do
            mine[page[k][1]] = page[k][4]
        end
        if #page < n + 100 then
            return mine
        end
        from = '(' .. page[#page][1]
    end
end

for _ = 1, tonumber(ARGV[3]) do
    local p, n = ARGV[at], tonumber(ARGV[at + 3])
    local stream = q .. ':p' .. p
    local mine, finished = owned(stream, ARGV[at + 1], ARGV[at + 2], n), {}
    at = at + 4
    for _ = 1, n do
        local entry, op = ARGV[at], ARGV[at + 2]
        local kind, ok = op:sub(1, 1), mine[entry] == tonumber(ARGV[at + 1])
        if ok and kind == 'F' then
            ids[#ids + 1] = op:sub(2)
            traces[#traces + 1] = 'e' .. op:sub(2)
            traces[#traces + 1] = 'h' .. op:sub(2)
            traces[#traces + 1] = 'o' .. op:sub(2)
        elseif ok and kind ~= 'D' then
            local plan = {kind, p, entry, op, mine[entry]}
            if #op > 1 or kind == 'E' or kind == 'U' then
                plan[6], plan[7] = entry_at(stream, entry)
                ok = plan[6] ~= nil
            end
            plans[#plans + 1] = ok and plan or nil
        end
        if not ok then
            answer[#answer + 1] = place
            refused[place] = true
        elseif kind == 'P' then
            noted = 1
        elseif kind ~= 'U' then
            mine[entry] = nil
            if kind ~= 'G' and kind ~= 'T' then
                finished[#finished + 1] = entry
                if noted > 0 then
                    wishes[#wishes + 1] = p .. ':' .. entry
                    wishes[#wishes + 1] = 'o' .. p .. ':' .. entry
                end
                if awaited and kind ~= 'B' then
                    local j = kind ~= 'D' and kind ~= 'F' and plans[#plans][6]
                    ends[#ends + 1] = {p, entry, op, j}
                end
            end
        end
        at = at + 3
        place = place + 1
    end
    if #finished > 0 then
        gone[#gone + 1] = {stream, finished}
    end
end

local now = clock()
answer[1] = now
for i = 1, #gone do
    call('XACK', gone[i][1], GROUP, unpack(gone[i][2]))
    call('XDEL', gone[i][1], unpack(gone[i][2]))
end
if #ids > 0 then
    call('HDEL', q .. ':ids', unpack(ids))
    call('HDEL', q .. ':trace', unpack(traces))
end

-- Most jobs that had a unique key have nothing else.
local left = {}
for i = 1, #plans do
    local kind, p, entry, _, _, j = unpack(plans[i])
    local id, _, unique
    if kind == 'E' then
        id, _, unique = identity(j, p .. '-' .. entry)
    end
    if id and not (unique and call('HGET', q .. ':next', unique)) then
        if unique and call('HGET', q .. ':unique', unique) == id then
            call('HDEL', q .. ':unique', unique)
        end
        call('HDEL', q .. ':ids', id)
        call('HDEL', q .. ':trace', 'e' .. id, 'h' .. id, 'o' .. id)
        call('HDEL', q .. ':taken', p .. ':' .. entry)
    else
        left[#left + 1] = plans[i]
    end
end
if #left == 0 and noted == 0 and at > #ARGV and ARGV[2] == '0' then
    return answer
end

-- the rest of lib.lua
local given_back = false

local function give_back(p, entry, to)
    call('XCLAIM', q .. ':p' .. p, GROUP, to, 0, entry, 'JUSTID')
    given_back = true
end

-- Error, history and outcome, behind kind, number and counters. What is kept of it beyond the hand-out: how far it came.
local function note_texts(id, op, place)
    local traced, at_text = 0, 66
    local progress = place and noted > 0 and call('HGET', q .. ':cancel', 'o' .. place)
    if progress then
        traced = 1
        call('HSET', q .. ':trace', 'o' .. id, progress)
    end
    for _, what in ipairs({'e', 'h', 'o'}) do
        if at_text > #op then
            break
        end
        local length = struct.unpack('<i4', op, at_text)
        local text = length >= 0 and op:sub(at_text + 4, at_text + 3 + length)
        at_text = at_text + 4 + math.max(length, 0)
        if text then
            traced = 1
            if what == 'h' then
                add_history(q, id, text)
            else
                call('HSET', q .. ':trace', what .. id, text)
            end
        end
    end
    return traced
end

for i = 1, #left do
    local kind, p, entry, op, count, j, s = unpack(left[i])
    if kind == 'G' or kind == 'T' then
        give_back(p, entry, kind == 'T' and TAKEN or BACK)
        if j then
            note_texts((identity(j, p .. '-' .. entry)), op)
        end
    elseif kind == 'U' then
        local id, _, unique = identity(j, p .. '-' .. entry)
        free_unique(q, unique, id)
    elseif kind == 'P' then
        call('DEL', q .. ':nothing') -- it may be the first to write
        call('HSET', q .. ':cancel', 'o' .. p .. ':' .. entry, op:sub(2))
    else
        local id, flags, unique = identity(j, p .. '-' .. entry)
        local deliveries, fence, enqueued, from, available, counters = standing(s, entry, count)
        local traced, asked = is_traced(s), kind == 'B' and wish(q, p, entry, s) or 0
        local mark = call('HGET', q .. ':taken', p .. ':' .. entry)
        if mark then
            call('HDEL', q .. ':taken', p .. ':' .. entry)
            traced = 1
            counters = counters:sub(1, 8) .. mark:sub(1, 8) .. counters:sub(17, 24) .. mark:sub(9) .. counters:sub(33)
        end
        if kind == 'E' then
            forget_job(q, id, unique)
        elseif kind == 'K' or kind == 'L' then
            local keep = now + struct.unpack('<i8', op, 2)
            traced = math.max(traced, note_texts(id, op, p .. ':' .. entry))
            if kind == 'L' and #j >= 14 and j:byte(1) == 1 then
                local _, _, id_n, name_n, unique_n, _, header_n = struct.unpack('<BBBBI2I4I4', j)
                j = '\1' .. string.char(flags % 8) .. j:sub(3, 14 + id_n + name_n + unique_n + header_n)
            end
            free_unique(q, unique, id)
            s = standing_pack(traced, deliveries, fence, enqueued, from, available, counters)
            lay_down(q, id, true, 3, keep, rest_pack(s, p, 3, 0, keep, j))
        else
            local number = struct.unpack('<i8', op, 2)
            traced = math.max(traced, note_texts(id, op, p .. ':' .. entry))
            counters = op:sub(10, 65)
            if kind == 'B' then
                number = asked > 0 and 0 or number -- one that is to end is judged without delay
                local due = now + math.max(number, 0)
                s = standing_pack(traced + 2 * asked, deliveries, fence, enqueued, from, due, counters)
                if number > 0 then
                    lay_down(q, id, flags % 2 == 1, 1, due, rest_pack(s, p, 1, 0, 0, j))
                else
                    line_up(q, p, id, j, s)
                end
            else
                free_unique(q, unique, id)
                s = standing_pack(traced, deliveries, fence, enqueued, from, available, counters)
                lay_down(q, id, true, 4, now, rest_pack(s, p, 4, number % 256, now, j))
                if number >= 256 then
                    call('ZADD', q .. ':done', now + math.floor(number / 256), id)
                end
            end
        end
    end
end
if #wishes > 0 then
    call('HDEL', q .. ':cancel', unpack(wishes))
end
if given_back then
    wake(q, 'q')
end
for i = 1, #ends do -- those who wait hear where it stood and its id ('' = unknown)
    local p, entry, op, j = unpack(ends[i], 1, 4)
    local id = j and identity(j, p .. '-' .. entry) or op:sub(2)
    call('XADD', q .. ':ended', 'MAXLEN', '~', 1000, '*', p .. ':' .. entry, id)
    call('PEXPIRE', q .. ':ended', 3600000)
end
for i = at, #ARGV, 8 do
    if not refused[tonumber(ARGV[i])] then
        store_follow(i + 1)
    end
end
if ARGV[2] == '1' then
    answer[2] = next_due(1)
end
return answer
