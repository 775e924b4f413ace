-- SPDX-License-Identifier: MIT
--
-- What an expired worker held in this queue goes back to its place with a mark: what its record lists as running as a
-- crash, the rest as losses. ARGV: worker, at most so many, losses in a row that are a crash (0: none), start of the
-- server, history entry of a crash ('' = none). Answers how many.
local q, worker, limit, cap, lost = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[5]
local key, consumer, now = q .. ':w:' .. worker, 'w' .. worker, clock()
if call('ZSCORE', q .. ':workers', worker) == false or lease_end(q, worker, tonumber(ARGV[4])) > now then
    return 0
end
local running, streams, handled, more = {}, {}, 0, false
for one in (call('HGET', key, 'running') or ''):gmatch('%S+') do
    running[one] = true
end
begin_writes(q)

local function judge(p, entry, count)
    local stream, field = q .. ':p' .. p, p .. ':' .. entry
    local j, s = entry_at(stream, entry)
    handled = handled + 1
    if not j then
        call('XACK', stream, GROUP, entry)
        return
    end
    local crashes, losses = 0, 0
    local before = call('HGET', q .. ':taken', field)
    if before then
        crashes, losses = struct.unpack('<i8i8', before)
    elseif s ~= '' then
        local _, c, _, l = struct.unpack('<i8i8i8i8', s, 42)
        crashes, losses = c, l
    end
    if running[p .. ':' .. entry .. ':' .. count] or (cap > 0 and losses + 1 >= cap) then
        crashes, losses = crashes + 1, 0
        if lost ~= '' then
            add_history(q, (identity(j, p .. '-' .. entry)), lost)
        end
    else
        losses = losses + 1
    end
    call('XCLAIM', stream, GROUP, TAKEN, 0, entry, 'JUSTID')
    call('HSET', q .. ':taken', field, struct.pack('<i8i8', crashes, losses))
end

for _, p in ipairs(priorities(q)) do
    local stream = q .. ':p' .. p
    local room = limit - handled
    local pending = try('XPENDING', stream, GROUP, '-', '+', room + 1, consumer)
    for k = 1, math.min(#pending, room) do
        judge(p, pending[k][1], pending[k][4])
    end
    more = more or #pending > room
    if not pending.err then
        streams[#streams + 1] = stream
    end
end
if handled > 0 then
    wake(q, 'q')
    call('HSET', key, 'taken', 1)
end
if not more then
    for i = 1, #streams do
        call('XGROUP', 'DELCONSUMER', streams[i], GROUP, consumer)
    end
    call('ZREM', q .. ':workers', worker)
    if call('HEXISTS', key, 'taken') == 1 then
        call('PEXPIRE', key, 3600000)
    else
        call('DEL', key)
    end
end
return handled
