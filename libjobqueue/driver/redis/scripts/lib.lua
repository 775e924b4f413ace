-- SPDX-License-Identifier: MIT
--
-- What the scripts share; tools/gen-lua puts it before each of them. KEYS[1] is the base of the prefix,
-- "{prefix}". Bodies are opaque bytes here. Each script reads and checks first and begins its writes with a
-- removing command, so that nothing but a push is refused when the server is out of memory.
--
-- Stream entry: j = what the job is, s = where it stands (absent: fresh).
-- j: format 1, flags (1 id given by the caller, 2 unique, 4 header, 8 body), lengths of id, name, unique key,
--    version, length of the header; then these texts and the body.
-- s: 1 = has a trace, deliveries, fence, enqueued, base, available (8 bytes each), seven counters.
-- A job at rest (delayed, done, dead) is one field of Q:rest: s, priority, state, reason, died or kept until, j.
local call = redis.call
local G = KEYS[1]
local GROUP, BACK, TAKEN = 'workers', 'back', 'taken'
local ZEROS = string.rep('\0', 56)

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

local function base(name)
    local safe = name:gsub('[%%{}:]', function(c) return string.format('%%%02X', c:byte()) end)
    return G:sub(1, -2) .. ':' .. safe .. '}'
end

local function clock()
    local t = call('TIME')
    return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- A removing command that removes nothing: what follows is allowed at maxmemory.
local function begin_writes()
    call('DEL', G .. ':nothing')
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

local function standing_pack(traced, deliveries, fence, enqueued, from, available, counters)
    return struct.pack('<Bi8i8i8i8i8', traced, deliveries, fence, enqueued, from, available) .. counters
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

local function wake(what, name)
    call('XADD', G .. ':wake', 'MAXLEN', '~', 100, '*', what, name)
end

-- The stream of a priority is there, with its group, and listed.
local function ensure_stream(q, name, p)
    local used = call('GET', q .. ':prios') or ''
    if used:find(p, 1, true) then
        return
    end
    try('XGROUP', 'CREATE', q .. ':p' .. p, GROUP, '0', 'MKSTREAM')
    call('SET', q .. ':prios', used .. p)
    call('SADD', G .. ':queues', name)
    wake('q', name)
end

-- Something of the queue is due then.
local function note_due(name, at)
    local head = call('ZRANGE', G .. ':due', 0, 0, 'WITHSCORES')[2]
    call('ZADD', G .. ':due', 'LT', at, name)
    if not head or at < tonumber(head) then
        wake('d', name)
    end
end

-- Where a job stands that cannot be found by the time in its id; nil: it can.
local function index(id, name, place)
    if place then
        call('HSET', G .. ':ids', id, place .. ' ' .. name)
    else
        call('HDEL', G .. ':ids', id)
    end
end

local function free_unique(q, unique, id)
    if unique and call('HGET', q .. ':unique', unique) == id then
        call('HDEL', q .. ':unique', unique)
    end
end

local function forget_job(q, id, unique)
    free_unique(q, unique, id)
    call('HDEL', G .. ':ids', id)
    call('HDEL', q .. ':trace', 'e' .. id, 'h' .. id)
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
local function line_up(q, name, p, id, j, s)
    ensure_stream(q, name, p)
    local entry = call('XADD', q .. ':p' .. p, '*', 'j', j, 's', s)
    index(id, name, p .. ':' .. entry)
end

local function lay_down(q, name, id, given, state, at, r)
    call('HSET', q .. ':rest', id, r)
    if state == 1 then
        call('ZADD', q .. ':delayed', at, id)
    else
        call('ZADD', q .. (state == 3 and ':done' or ':dead'), at, id)
    end
    index(id, name, (given or state ~= 1) and 'r' or nil)
    if state ~= 4 then
        note_due(name, at)
    end
end

-- When the lease of a worker is over, not before one lease after the server's start; 0: unknown worker.
local function lease_end(worker, start)
    local until_ms = tonumber(call('ZSCORE', G .. ':alive', worker) or 0)
    local lease = tonumber(call('HGET', G .. ':w:' .. worker, 'lease') or 0)
    return math.max(until_ms, start + lease)
end

-- The earliest of delayed jobs, kept results and, start given, the leases of others than `but`; 0: none.
local function next_due(start, but)
    local due = tonumber(call('ZRANGE', G .. ':due', 0, 0, 'WITHSCORES')[2] or 0)
    if start then
        local first = call('ZRANGE', G .. ':alive', 0, 1)
        local other = first[1] ~= but and first[1] or first[2]
        local over = other and lease_end(other, start) or 0
        if over > 0 and (due == 0 or over < due) then
            due = over
        end
    end
    return due
end

