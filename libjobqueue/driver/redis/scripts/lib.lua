-- SPDX-License-Identifier: MIT
--
-- What the scripts share; tools/gen-lua puts it before each of them. KEYS[1] is the base of a queue,
-- "{prefix:queue}", and every key that is touched begins with it: on a Cluster a script sees one slot. Scripts that
-- may have several queues get their bases as KEYS[1], KEYS[2], ... and how many in ARGV. Bodies are opaque bytes
-- here. Each script reads and checks first and begins its writes with a removing command, so that nothing but a
-- push is refused when the server is out of memory.
--
-- Stream entry: j = what the job is, s = where it stands (absent: fresh).
-- j: format 1, flags (1 id given by the caller, 2 unique, 4 header, 8 body), lengths of id, name, unique key,
--    version, length of the header; then these texts and the body.
-- s: 1 = has a trace + what was asked of it (2 soft, 4 hard cancel), deliveries, fence, enqueued, base, available
--    (8 bytes each), seven counters.
-- A job at rest (delayed, done, dead) is one field of Q:rest: s, priority, state, reason, died or kept until (delayed:
-- 1 = a follower, which waits for the end of another job and stands at FAR), j.
local call = redis.call
local GROUP, BACK, TAKEN = 'workers', 'back', 'taken'
local ZEROS = string.rep('\0', 56)
local FAR, LAST = 9007199254740991, '18446744073709551615-18446744073709551615'

-- For a stream or group that may be missing, or a group that may exist: then the error is answered. Any other
-- one, of an account's rights above all, ends the script: it must not look like an empty stream.
local function try(...)
    local answer = redis.pcall(...)
    local said = answer.err
    if said and not (said:find('NOGROUP') or said:find('BUSYGROUP') or said:find('no such key')) then
        return call(...)
    end
    return answer
end

local function clock()
    local t = call('TIME')
    return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- A removing command that removes nothing: what follows is allowed at maxmemory.
local function begin_writes(q)
    call('DEL', q .. ':nothing')
end

local function millis(id)
    return tonumber(id:match('^%d+'))
end

-- Of two entries.
local function before(a, b)
    local a_ms, b_ms = millis(a), millis(b)
    return a_ms < b_ms or (a_ms == b_ms and tonumber(a:match('%d+$')) < tonumber(b:match('%d+$')))
end

-- Does text a stand behind b in a sorted set? By bytes; Lua's own comparison knows languages.
local function behind(a, b)
    for i = 1, math.min(#a, #b) do
        local x, y = a:byte(i), b:byte(i)
        if x ~= y then
            return x > y
        end
    end
    return #a > #b
end

-- How many members stand before a time and id, by halving: thousands may share a time.
local function rank_of(key, at, id)
    local low, high = call('ZCOUNT', key, '-inf', '(' .. at), call('ZCOUNT', key, '-inf', at)
    while low < high do
        local middle = math.floor((low + high) / 2)
        if behind(id, call('ZRANGE', key, middle, middle)[1]) then
            low = middle + 1
        else
            high = middle
        end
    end
    return low
end

-- The parts j and s of an entry's fields; an entry that is not ours is all j.
local function parts(fields)
    local j, s
    for i = 1, #fields, 2 do
        if fields[i] == 'j' then
            j = fields[i + 1]
        elseif fields[i] == 's' and #fields[i + 1] == 97 then
            s = fields[i + 1]
        end
    end
    return j or table.concat(fields, '\n'), s or ''
end

-- id, flags, unique key (nil: none); `place` names a job that cannot be read.
local function identity(j, place)
    if #j >= 14 and j:byte(1) == 1 then
        local _, flags, id_n, name_n, unique_n, _, header_n = struct.unpack('<BBBBI2I4I4', j)
        local texts = 14 + id_n + name_n
        if texts + unique_n + header_n <= #j then
            return j:sub(15, 14 + id_n), flags, unique_n > 0 and j:sub(texts + 1, texts + unique_n) or nil
        end
    end
    return 'malformed-' .. place, 0, nil
end

-- deliveries, fence, enqueued, base, available, counters
local function standing(s, entry, count)
    if s ~= '' then
        local _, deliveries, fence, enqueued, from, available = struct.unpack('<Bi8i8i8i8i8', s)
        return deliveries + count, fence + count, enqueued, from, available, s:sub(42)
    end
    local ms = millis(entry)
    return count, count, ms, ms, ms, ZEROS
end

local function is_traced(s)
    return (s:byte(1) or 0) % 2
end

-- Is the job to end? 0 no, 1 soft, 2 hard: by what it came with, and what has been noted since it was handed out.
local function wish(q, p, entry, s)
    local noted = tonumber(call('HGET', q .. ':cancel', p .. ':' .. entry) or 0)
    return math.max(noted, math.floor((s:byte(1) or 0) / 2))
end

local function standing_pack(traced, deliveries, fence, enqueued, from, available, counters)
    return struct.pack('<Bi8i8i8i8i8', traced, deliveries, fence, enqueued, from, available) .. counters
end

-- Where an entry that was out before stands. One that was given back with texts (history, error) has stood elsewhere:
-- whoever settles it must take them along.
local function told_standing(q, p, entry, j, s)
    if s == '' then
        local id = identity(j, p .. '-' .. entry)
        local texts, ms = call('HMGET', q .. ':trace', 'h' .. id, 'e' .. id), millis(entry)
        s = (texts[1] or texts[2]) and standing_pack(1, 0, 0, ms, ms, ms, ZEROS) or s
    end
    return s
end

local function rest_pack(s, priority, state, reason, at, j)
    return s .. struct.pack('<BBBi8', priority, state, reason, at) .. j
end

-- s, priority, state, reason, at, j
local function rest_parts(r)
    local priority, state, reason, at = struct.unpack('<BBBi8', r, 98)
    return r:sub(1, 97), priority, state, reason, at, r:sub(109)
end

local function entry_at(stream, id)
    local found = call('XRANGE', stream, id, id)[1]
    if found then
        return parts(found[2])
    end
end

-- Priorities in use, high to low.
local function priorities(q)
    local used, list = call('GET', q .. ':prios') or '', {}
    for p = 9, 0, -1 do
        if used:find(p, 1, true) then
            list[#list + 1] = p
        end
    end
    return list
end

-- Those who wait hear of what adds no entry: q given or taken back, a new priority; d an earlier delayed job.
local function wake(q, what)
    call('XADD', q .. ':wake', 'MAXLEN', '~', 100, '*', what, '')
end

-- To the end of a stream. The streams of a queue with a capacity are closed: their last id is the largest there is, so
-- that a push without a script is refused. Which it was before stands in Q:limit; what somebody has deleted there is
-- found out.
local function append(q, p, ...)
    local stream = q .. ':p' .. p
    local entry = redis.pcall('XADD', stream, '*', ...)
    if not entry.err then
        return entry
    elseif not entry.err:find('last possible ID', 1, true) then
        return call('XADD', stream, '*', ...)
    end
    local last = call('HGET', q .. ':limit', p)
    if not last or redis.pcall('XSETID', stream, last).err then
        local top, gone = call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1], call('XINFO', 'STREAM', stream)
        if redis.pcall('XSETID', stream, top and top[1] or '0-1').err then
            for i = 1, #gone, 2 do
                if gone[i] == 'max-deleted-entry-id' then
                    call('XSETID', stream, gone[i + 1])
                end
            end
        end
    end
    entry = call('XADD', stream, '*', ...)
    call('HSET', q .. ':limit', p, entry)
    call('XSETID', stream, LAST)
    return entry
end

-- The stream of a priority is there, with its group, and listed. Answers the list; 'c' in it: the streams are closed.
local function ensure_stream(q, p)
    local used = call('GET', q .. ':prios') or ''
    if used:find(p, 1, true) then
        return used
    end
    if used == '' and (call('HGET', q .. ':limit', 'capacity') or '0') ~= '0' then
        used = 'c' -- somebody has deleted the list
    end
    try('XGROUP', 'CREATE', q .. ':p' .. p, GROUP, '0', 'MKSTREAM')
    call('SET', q .. ':prios', used .. p)
    if used:find('c', 1, true) then
        call('XSETID', q .. ':p' .. p, LAST)
    end
    wake(q, 'q')
    return used .. p
end

-- May the queue, whose streams are closed and listed, have no further job?
local function is_full(q, used)
    local count = call('ZCARD', q .. ':delayed') + call('ZCARD', q .. ':dead')
    for p in used:gmatch('%d') do
        count = count + call('XLEN', q .. ':p' .. p)
    end
    return count >= tonumber(call('HGET', q .. ':limit', 'capacity') or FAR)
end

-- Where a job stands that cannot be found by the time in its id; nil: it can.
local function index(q, id, place)
    if place then
        call('HSET', q .. ':ids', id, place)
    else
        call('HDEL', q .. ':ids', id)
    end
end

-- Appends to the history, the last ten are kept.
local function add_history(q, id, entry)
    local packed = call('HGET', q .. ':trace', 'h' .. id) or ''
    local starts, at = {}, 1
    while at + 3 <= #packed do
        starts[#starts + 1] = at
        at = at + 4 + struct.unpack('<I4', packed, at)
    end
    if #starts >= 10 then
        packed = packed:sub(starts[#starts - 8])
    end
    call('HSET', q .. ':trace', 'h' .. id, packed .. struct.pack('<I4', #entry) .. entry)
end

-- A ready job gets a new place at the end of its stream.
local function line_up(q, p, id, j, s)
    ensure_stream(q, p)
    index(q, id, p .. ':' .. append(q, p, 'j', j, 's', s))
end

local function lay_down(q, id, given, state, at, r)
    call('HSET', q .. ':rest', id, r)
    if state == 1 then
        local first = call('ZRANGE', q .. ':delayed', 0, 0, 'WITHSCORES')[2]
        call('ZADD', q .. ':delayed', at, id)
        if not first or at < tonumber(first) then
            wake(q, 'd')
        end
    else
        call('ZADD', q .. (state == 3 and ':done' or ':dead'), at, id)
    end
    index(q, id, (given or state ~= 1) and 'r' or nil)
end

-- A job gives its unique key up; a follower has none to give. The holder's follower takes it and waits for its own due
-- time.
local function free_unique(q, unique, id)
    local follower = unique and call('HGET', q .. ':next', unique)
    if not unique or call('HGET', q .. ':unique', unique) ~= id then
        if follower == id then
            call('HDEL', q .. ':next', unique)
        end
        return
    end
    call('HDEL', q .. ':unique', unique)
    local r = follower and call('HGET', q .. ':rest', follower)
    if follower then
        call('HDEL', q .. ':next', unique)
    end
    if r then
        local s, p, j = r:sub(1, 97), r:byte(98), r:sub(109)
        local _, _, _, _, due = standing(s, '', 0)
        call('HSET', q .. ':unique', unique, follower)
        if due > clock() then
            lay_down(q, follower, true, 1, due, rest_pack(s, p, 1, 0, 0, j))
        else
            call('ZREM', q .. ':delayed', follower)
            call('HDEL', q .. ':rest', follower)
            line_up(q, p, follower, j, s)
        end
    end
end

local function forget_job(q, id, unique)
    free_unique(q, unique, id)
    call('HDEL', q .. ':ids', id)
    call('HDEL', q .. ':trace', 'e' .. id, 'h' .. id, 'o' .. id)
end

-- A job that is new in this store.
local function store_item(q, p, id, at, delay, unique, j)
    local given, now = j:byte(2) % 2 == 1, nil
    if at > 0 or delay > 0 then
        now = clock()
        at = at > 0 and at or now + delay
    end
    if at > (now or 0) then
        local s = standing_pack(0, 0, 0, now, now, at, ZEROS)
        lay_down(q, id, given, 1, at, rest_pack(s, p, 1, 0, 0, j))
    else
        local entry = append(q, p, 'j', j)
        if given then
            index(q, id, p .. ':' .. entry)
        end
    end
    if unique ~= '' then
        call('HSET', q .. ':unique', unique, id)
    end
end

-- What follows another job's end, from ARGV[from] on: base of its queue (in the same slot), priority, id, at, delay,
-- unique key, j. One whose id exists, or whose unique key is held, is not stored.
local function store_follow(from)
    local q, p, id, at, delay, unique, j = unpack(ARGV, from, from + 6)
    if (j:byte(2) % 2 == 1 and call('HEXISTS', q .. ':ids', id) == 1) or
        (unique ~= '' and call('HEXISTS', q .. ':unique', unique) == 1) then
        return
    end
    ensure_stream(q, p)
    store_item(q, p, id, tonumber(at), tonumber(delay), unique, j)
end

-- Has a queue a job of that id, as far as the indexes know? g: base of the prefix, '' = only this queue.
local all_ids
local function is_known(g, q, id)
    if call('HEXISTS', q .. ':ids', id) == 1 then
        return true
    end
    if not all_ids then
        all_ids = {}
        for _, name in ipairs(g ~= '' and call('SMEMBERS', g .. ':queues') or {}) do
            local safe = name:gsub('[%%{}:]', function(c) return string.format('%%%02X', c:byte()) end)
            all_ids[#all_ids + 1] = g:sub(1, -2) .. ':' .. safe .. '}:ids'
            all_ids[#all_ids + 1] = g:sub(1, -2) .. ':' .. safe .. '}:hidden:ids'
        end
    end
    for _, ids in ipairs(all_ids) do
        if call('HEXISTS', ids, id) == 1 then
            return true
        end
    end
    return false
end

-- Where in the queue a job stands: 'r' (at rest) or "priority:entry"; nil: it is not here. ms: the time in its id
-- (-1: none), most: about how many entries may be looked at. Fresh entries have been added soon after their id was
-- made; by a clock that may differ, and later when the server stood still. So from the time in the id forwards, then
-- backwards, for a day.
local function search(stream, command, from, to, left, id)
    while left > 0 do
        local count = math.min(left, 500)
        local page = try(command, stream, from, to, 'COUNT', count)
        for i = 1, #page do
            if identity(parts(page[i][2]), '') == id then
                return page[i][1]
            end
        end
        if #page < count then
            return nil
        end
        left, from = left - count, '(' .. page[count][1]
    end
end

local function locate(q, id, ms, most)
    local DAY, EARLIER = 86400000, 5
    local place = call('HGET', q .. ':ids', id)
    if place or call('HEXISTS', q .. ':rest', id) == 1 then
        return place or 'r'
    end
    local malformed = id:match('^malformed%-(%d%-%d+%-%d+)$')
    if malformed then
        malformed = malformed:gsub('-', ':', 1)
        return entry_at(q .. ':p' .. malformed:sub(1, 1), malformed:sub(3)) and malformed
    end
    local used = ms >= 0 and priorities(q) or {}
    local start, share = math.max(ms - EARLIER, 0), math.ceil(most / 2 / math.max(#used, 1))
    for _, way in ipairs({{'XRANGE', start, ms + DAY}, {'XREVRANGE', '(' .. start, math.max(ms - DAY, 0)}}) do
        for _, p in ipairs(used) do
            local entry = search(q .. ':p' .. p, way[1], way[2], way[3], share, id)
            if entry then
                return p .. ':' .. entry
            end
        end
    end
end

-- When the lease of a worker is over, not before one lease after the server's start; 0: unknown worker.
local function lease_end(q, worker, start)
    local until_ms = tonumber(call('ZSCORE', q .. ':workers', worker) or 0)
    local lease = tonumber(call('HGET', q .. ':w:' .. worker, 'lease') or 0)
    return math.max(until_ms, start + lease)
end

-- The earliest of delayed jobs and kept results in the first n queues and, start given, the leases of others than
-- `but`; 0: none.
local function next_due(n, start, but)
    local due = math.huge
    for k = 1, n do
        local delayed = call('ZRANGE', KEYS[k] .. ':delayed', 0, 0, 'WITHSCORES')[2]
        local done = call('ZRANGE', KEYS[k] .. ':done', 0, 0, 'WITHSCORES')[2]
        if delayed or done then
            due = math.min(due, tonumber(delayed or done), tonumber(done or delayed))
        end
        local first = start and call('ZRANGE', KEYS[k] .. ':workers', 0, 1)
        local other = first and (first[1] ~= but and first[1] or first[2])
        if other then
            due = math.min(due, lease_end(KEYS[k], other, start))
        end
    end
    return due < FAR and due or 0
end
