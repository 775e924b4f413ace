-- SPDX-License-Identifier: MIT
--
-- Reserves what the native read that follows in the pipeline cannot: what was given or taken back, and the
-- streams before the one that it reads. ARGV: worker, its lease, wanted, wanted taken back, wanted bytes, start
-- of the server, place of the stream read natively (0: none), its priority; per queue: name, hash.
-- Answers: time, next due, 1 = a record stands for what the native read takes + 2 = nothing was left behind,
-- per queue its priorities, then per job: place of the queue, priority, entry, delivery count, j, s, counters
-- since it was taken back.
local worker, lease, want = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local want_taken, want_bytes, start = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local native, native_p = tonumber(ARGV[7]), tonumber(ARGV[8])
local consumer, queues = 'w' .. worker, (#ARGV - 8) / 2
local bases, answer, jobs = {}, {}, {}
local left, room, now = want, want_bytes > 0 and want_bytes or math.huge, clock()
local living = tonumber(call('ZSCORE', G .. ':alive', worker) or 0) > now
local idle, cut = {}, false

local function full()
    return left <= 0 or room <= 0
end

local function keep_record(k)
    local key = G .. ':w:' .. worker
    if not living then
        begin_writes()
        call('ZADD', G .. ':alive', now + lease, worker)
        call('HSETNX', key, 'started', now)
        call('HSET', key, 'lease', lease)
        call('PERSIST', key)
        living = true
    end
    if call('HEXISTS', key, 'q:' .. ARGV[7 + 2 * k]) == 0 then
        begin_writes()
        call('HSET', key, 'q:' .. ARGV[7 + 2 * k], ARGV[8 + 2 * k])
        call('SADD', G .. ':queues', ARGV[7 + 2 * k])
    end
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

local function hand_out(k, p, entry, count, fields, mark)
    local j, s = parts(fields)
    for _, v in ipairs({k - 1, p, entry, count, j, s, mark or ''}) do
        jobs[#jobs + 1] = v
    end
    left, room = left - 1, room - body_size(j)
    keep_record(k)
end

-- What was given back and taken back, as it stood.
local function claim(k, p)
    local stream = bases[k] .. ':p' .. p
    local back = try('XPENDING', stream, GROUP, '-', '+', left, BACK)
    if back.err then -- somebody has removed the stream
        begin_writes()
        try('XGROUP', 'CREATE', stream, GROUP, '0', 'MKSTREAM')
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
            local mark = marked and (call('HGET', bases[k] .. ':taken', p .. ':' .. one[1]) or string.rep('\0', 16))
            want_taken = want_taken - (marked and 1 or 0)
            hand_out(k, p, one[1], one[4] + 1, claimed[2], mark)
        else
            call('XACK', stream, GROUP, one[1])
        end
    end
    cut = cut or (want_taken == 0 and not full() and #call('XPENDING', stream, GROUP, '-', '+', 1, TAKEN) > 0)
end

local function read(k, p)
    local stream = bases[k] .. ':p' .. p
    while not full() and call('XLEN', stream) > 0 do
        local n = want_bytes == 1 and 1 or want_bytes > 0 and math.min(left, 16) or left
        local got = call('XREADGROUP', 'GROUP', GROUP, consumer, 'COUNT', n, 'STREAMS', stream, '>')
        if not got then
            idle[#idle + 1] = stream
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
    bases[k] = base(ARGV[7 + 2 * k])
    answer[3 + k] = call('GET', bases[k] .. ':prios') or ''
end
-- A worker that takes nothing has no record.
if native > 0 and (living or has_new(bases[native] .. ':p' .. native_p)) then
    keep_record(native)
end

local function serve()
    for k = 1, queues do
        for _, p in ipairs(priorities(bases[k])) do
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
if not living then
    for i = 1, #idle do
        if #call('XPENDING', idle[i], GROUP, '-', '+', 1, consumer) == 0 then
            call('XGROUP', 'DELCONSUMER', idle[i], GROUP, consumer)
        end
    end
end
answer[1], answer[2], answer[3] = now, next_due(start, worker), (living and 1 or 0) + ((full() or cut) and 0 or 2)
for i = 1, #jobs do
    answer[#answer + 1] = jobs[i]
end
return answer
