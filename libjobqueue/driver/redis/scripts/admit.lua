-- SPDX-License-Identifier: MIT
-- with run.lua
--
-- As push.lua, for batches with guards and with items that replace what holds their key: behind the priority of such
-- an item stands "r" and its longest wait (0: none). ARGV: base of the prefix, '' = an id need not be looked for in
-- other queues; 1 = of a Cluster; how many items, the items; per guard: place of its item, text, number of values,
-- values. All guards are judged before anything is stored. Answers also 2 = replaced (the id of what was, or of the new
-- follower), 5 = the guard says no.
local g, strict, n = ARGV[1], ARGV[2] == '1', tonumber(ARGV[3])
local answer, verdicts, lists, at = {}, {}, {}, 4 + 7 * n

while ARGV[at] do
    local i, count = tonumber(ARGV[at]), tonumber(ARGV[at + 2])
    local q, _, id, _, _, _, j = unpack(ARGV, 4 + 7 * i, 10 + 7 * i)
    if j:byte(2) % 2 == 0 or not is_known(g, q, id) then
        local good, value = run('guard', ARGV[at + 1], q, {unpack(ARGV, at + 3, at + 2 + count)}, strict)
        if not good then
            return value
        elseif not value or value == 0 then
            verdicts[i] = 5
        end
    end
    at = at + 3 + count
end

-- The new job under the id of the one it replaces; that id is in the index.
local function recast(j, id)
    local _, flags, id_n, name_n, unique_n, version, header_n = struct.unpack('<BBBBI2I4I4', j)
    return struct.pack('<BBBBI2I4I4', 1, flags - flags % 2 + 1, #id, name_n, unique_n, version, header_n) .. id ..
        j:sub(15 + id_n)
end

local function time_of(id)
    local high, low = id:match('^(%x%x%x%x%x%x%x%x)%-(%x%x%x%x)%-7...%-....%-............$')
    return high and tonumber(high .. low, 16) or -1
end

local function due_at(at_ms, delay, now, from, most)
    local due = at_ms > 0 and at_ms or now + delay
    return math.max(now, most > 0 and math.min(due, from + most) or due)
end

-- The follower is kept for the end of the holder.
local function follow(q, p, most, id, at_ms, delay, unique, j)
    local now = clock()
    local list = ensure_stream(q, p)
    if list:find('c', 1, true) and is_full(q, list) then
        return 4, ''
    end
    local s = standing_pack(0, 0, 0, now, now, due_at(at_ms, delay, now, now, most), ZEROS)
    lay_down(q, id, true, 1, FAR, rest_pack(s, p, 1, 0, 1, recast(j, id)))
    call('HSET', q .. ':next', unique, id)
    return 2, id
end

-- What stands at rest or in its stream is put anew: with another body, and when it is due now.
local function replace(q, p, most, id, at_ms, delay, unique, j, holder)
    local next_id, now = call('HGET', q .. ':next', unique), clock()
    local follower = next_id and call('HGET', q .. ':rest', next_id)
    local place = follower and 'r' or locate(q, holder, time_of(holder), 40000)
    local of, old_p, old, s, count = follower and next_id or holder, nil, nil, nil, 0
    if place == 'r' then
        local r = follower or call('HGET', q .. ':rest', of)
        local rest_s, rest_p, state, _, _, rest_j = rest_parts(r)
        if state ~= 1 then
            return nil
        end
        s, old_p, old = rest_s, rest_p, rest_j
    elseif place then
        old_p, of = place:match('^(%d)'), holder
        local stream, entry = q .. ':p' .. old_p, place:sub(3)
        local pending = try('XPENDING', stream, GROUP, entry, entry, 1)[1]
        if pending and pending[2]:sub(1, 1) == 'w' then
            return follow(q, p, most, id, at_ms, delay, unique, j)
        end
        old, s = entry_at(stream, entry)
        count = pending and pending[4] or 0
    end
    if not old then -- nobody knows where: it waits behind many or runs
        return follow(q, p, most, id, at_ms, delay, unique, j)
    end
    local entry = place ~= 'r' and place:sub(3)
    local traced, asked = is_traced(s), entry and wish(q, old_p, entry, s) or math.floor((s:byte(1) or 0) / 2)
    local _, fence, enqueued, from = standing(s, entry or '', count)
    local due = due_at(at_ms, delay, now, enqueued, most)
    s = standing_pack(traced + 2 * asked, 0, fence, enqueued, from, due, ZEROS)
    j = recast(j, of)
    if follower then
        call('HSET', q .. ':rest', of, rest_pack(s, p, 1, 0, 1, j))
        return 2, of
    end
    if entry then
        call('XACK', q .. ':p' .. old_p, GROUP, entry)
        call('XDEL', q .. ':p' .. old_p, entry)
        call('HDEL', q .. ':taken', place)
        call('HDEL', q .. ':cancel', place, 'o' .. place)
    else
        call('ZREM', q .. ':delayed', of)
    end
    if due > now then
        lay_down(q, of, true, 1, due, rest_pack(s, p, 1, 0, 0, j))
    else
        call('HDEL', q .. ':rest', of)
        line_up(q, p, of, j, s)
    end
    return 2, of
end

local function store(q, p, most, id, at_ms, delay, unique, j)
    local list = ensure_stream(q, p)
    if list:find('c', 1, true) and is_full(q, list) then
        return 4
    end
    store_item(q, p, id, at_ms, delay, unique, most and recast(j, id) or j)
    return 0
end

if n > 0 then -- a push is refused when the server is out of memory
    call('SETRANGE', ARGV[4] .. ':nothing', 0, '')
end
for i = 0, n - 1 do
    local q, p, id, at_ms, delay, unique, j = unpack(ARGV, 4 + 7 * i, 10 + 7 * i)
    local most = tonumber(p:match('r(%d+)$'))
    local result, holder = verdicts[i], ''
    p, at_ms, delay = p:sub(1, 1), tonumber(at_ms), tonumber(delay)
    if j:byte(2) % 2 == 1 and is_known(g, q, id) then
        result = 3
    elseif not result then
        holder = unique ~= '' and call('HGET', q .. ':unique', unique)
        if holder and most then
            result, holder = replace(q, p, most, id, at_ms, delay, unique, j, holder)
        elseif holder then
            result = 1
        end
        result = result or store(q, p, most, id, at_ms, delay, unique, j)
    end
    if result > 0 then
        for _, v in ipairs({i, result, holder or ''}) do
            answer[#answer + 1] = v
        end
    end
end
return answer
