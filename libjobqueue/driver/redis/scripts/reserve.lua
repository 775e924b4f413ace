-- SPDX-License-Identifier: MIT
--
-- Reserves what the native read that follows in the pipeline cannot: what was given or taken back, and the
-- streams before the one that it reads. ARGV: worker, its lease, the lease it has in other
-- queues and the end of that (0: none known), wanted, wanted taken back, wanted bytes, start of the server, place of
-- the queue read natively (0: none), the priority there, how many queues.
-- Answers: time, next due, 1 = a record stands for what the native read takes + 2 = nothing was left behind + 4 = a
-- record was begun,
-- per queue its priorities, then per job: place of the queue, priority, entry, delivery count, j, s, counters
-- since it was taken back, what was noted since it was handed out.
local worker, over, want = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5])
local want_taken, want_bytes, start = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local native, native_p, queues = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])
local consumer, living, answer, jobs = 'w' .. worker, {}, {}, {}
local left, room, now = want, want_bytes > 0 and want_bytes or math.huge, clock()
local idle, cut, begun = {}, false, false

local function full()
    return left <= 0 or room <= 0
end

local function is_living(k)
    if living[k] == nil then
        living[k] = tonumber(call('ZSCORE', KEYS[k] .. ':workers', worker) or 0) > now
    end
    return living[k]
end

local function keep_record(k)
    if is_living(k) then
        return
    end
    local key = KEYS[k] .. ':w:' .. worker
    begin_writes(KEYS[k])
    call('ZADD', KEYS[k] .. ':workers', over > now and over or now + ARGV[2], worker)
    call('HSETNX', key, 'started', now)
    call('HSET', key, 'lease', over > now and ARGV[3] or ARGV[2])
    call('PERSIST', key)
    living[k] = true
    begun = begun or over <= now
end

local function has_new(stream)
    local pending = try('XPENDING', stream, GROUP)
    return not pending.err and call('XLEN', stream) > pending[1]
end

local function body_size(j)
    if #j < 14 or j:byte(1) ~= 1 then
        return #j
    end
    local _, _, id_n, name_n, unique_n, _, header_n = struct.unpack('<BBBBI2I4I4', j)
    return #j - 14 - id_n - name_n - unique_n - header_n
end

local function hand_out(k, p, entry, count, fields, mark, noted)
    local j, s = parts(fields)
    s = mark and told_standing(KEYS[k], p, entry, j, s) or s
    for _, v in ipairs({k - 1, p, entry, count, j, s, mark or '', noted or ''}) do
        jobs[#jobs + 1] = v
    end
    left, room = left - 1, room - body_size(j)
    keep_record(k)
end

-- What was given back and taken back, as it stood.
local function claim(k, p)
    local stream = KEYS[k] .. ':p' .. p
    local back = try('XPENDING', stream, GROUP, '-', '+', left, BACK)
    if back.err then -- somebody has removed the stream
        begin_writes(KEYS[k])
        try('XGROUP', 'CREATE', stream, GROUP, '0', 'MKSTREAM')
        if answer[3 + k]:find('c', 1, true) then
            call('XSETID', stream, LAST)
        end
        return
    end
    local taken = want_taken > 0 and call('XPENDING', stream, GROUP, '-', '+', math.min(left, want_taken), TAKEN)
    taken = taken or {}
    local b, t = 1, 1
    while not full() and (back[b] or (taken[t] and want_taken > 0)) do
        local one, marked = back[b], false
        local other = want_taken > 0 and taken[t] or nil
        if other and (not one or before(other[1], one[1])) then
            one, marked, t = other, true, t + 1
        else
            b = b + 1
        end
        local claimed = call('XCLAIM', stream, GROUP, consumer, 0, one[1])[1]
        if claimed then
            local mark = marked and (call('HGET', KEYS[k] .. ':taken', p .. ':' .. one[1]) or string.rep('\0', 16))
            want_taken = want_taken - (marked and 1 or 0)
            hand_out(k, p, one[1], one[4] + 1, claimed[2], mark or '',
                call('HGET', KEYS[k] .. ':cancel', p .. ':' .. one[1]))
        else
            call('XACK', stream, GROUP, one[1])
        end
    end
    cut = cut or (want_taken == 0 and not full() and #call('XPENDING', stream, GROUP, '-', '+', 1, TAKEN) > 0)
end

local function read(k, p)
    local stream = KEYS[k] .. ':p' .. p
    while not full() and call('XLEN', stream) > 0 do
        local n = want_bytes == 1 and 1 or want_bytes > 0 and math.min(left, 16) or left
        local got = call('XREADGROUP', 'GROUP', GROUP, consumer, 'COUNT', n, 'STREAMS', stream, '>')
        if not got then
            idle[#idle + 1] = {k, stream}
            return
        end
        local entries, excess = got[1][2], {}
        for i = 1, #entries do
            if full() then
                excess[#excess + 1] = entries[i][1]
            else
                hand_out(k, p, entries[i][1], 1, entries[i][2])
            end
        end
        if #excess > 0 then
            excess[#excess + 1] = 'RETRYCOUNT'
            excess[#excess + 1] = 0
            excess[#excess + 1] = 'JUSTID'
            call('XCLAIM', stream, GROUP, BACK, 0, unpack(excess))
        end
        if #entries < n then
            return
        end
    end
end

for k = 1, queues do
    answer[3 + k] = call('GET', KEYS[k] .. ':prios') or ''
end
-- A worker that takes nothing has no record.
if native > 0 and (is_living(native) or has_new(KEYS[native] .. ':p' .. native_p)) then
    keep_record(native)
end

local function serve()
    for k = 1, queues do
        for _, p in ipairs(priorities(KEYS[k])) do
            if full() or (k == native and p < native_p) then
                return
            end
            claim(k, p)
            if k == native and p == native_p then
                return
            end
            read(k, p)
        end
        if k == native then
            return
        end
    end
end
serve()

-- Nobody stays behind whom no record names.
for i = 1, #idle do
    local stream = idle[i][2]
    if not is_living(idle[i][1]) and #call('XPENDING', stream, GROUP, '-', '+', 1, consumer) == 0 then
        call('XGROUP', 'DELCONSUMER', stream, GROUP, consumer)
    end
end
answer[1], answer[2] = now, next_due(queues, start, worker)
answer[3] = (native > 0 and is_living(native) and 1 or 0) + ((full() or cut) and 0 or 2) + (begun and 4 or 0)
for i = 1, #jobs do
    answer[#answer + 1] = jobs[i]
end
return answer
