-- SPDX-License-Identifier: MIT
--
-- How jobs are shown; put before the scripts that show some (after lib.lua). A shown job: cursor, state,
-- queue, id, priority, entry ('' = at rest), delivery count, worker, end of its lease, s, reason, died at, j,
-- counters since it was taken back, error, history, what was noted since it was handed out (1 soft, 2 hard cancel), until
-- when it is kept (0: for ever), outcome.
local now, shown = clock(), {}
local keys_only = false

local function text(j)
    if keys_only and #j >= 14 and j:byte(1) == 1 then
        local _, _, id_n, name_n, unique_n = struct.unpack('<BBBBI2', j)
        return j:sub(1, 14 + id_n + name_n + unique_n)
    end
    return j
end

local function trace(q, id)
    if keys_only then
        return '', '', ''
    end
    local all = call('HMGET', q .. ':trace', 'e' .. id, 'h' .. id, 'o' .. id)
    return all[1] and 'e' .. all[1] or '', all[2] or '', all[3] and 'o' .. all[3] or ''
end

-- 1: delayed and 2: reserved are seen as ready when their time has come.
local function show_entry(cursor, name, q, p, entry, count, consumer, j, s)
    local id, state, worker, alive = identity(j, p .. '-' .. entry), 0, '', 0
    local err, history, outcome = trace(q, id)
    local progress = not keys_only and call('HGET', q .. ':cancel', 'o' .. p .. ':' .. entry)
    if consumer:sub(1, 1) == 'w' then
        alive = tonumber(call('ZSCORE', q .. ':workers', consumer:sub(2)) or 0)
        if alive > now then
            state, worker = 2, consumer:sub(2)
        end
    end
    shown[#shown + 1] = {cursor, state, name, id, p, entry, count, worker, alive, s, 0, 0, text(j),
        call('HGET', q .. ':taken', p .. ':' .. entry) or '', err, history,
        call('HGET', q .. ':cancel', p .. ':' .. entry) or '', 0, progress and 'o' .. progress or outcome}
end

local function show_rest(cursor, name, q, id, r)
    local s, p, state, reason, at, j = rest_parts(r)
    local err, history, outcome = trace(q, id)
    local _, _, _, _, available = standing(s, '', 0)
    local keep = state >= 3 and call('ZSCORE', q .. ':done', id) or 0
    if state == 1 and available <= now and at == 0 then
        state = 0
    end
    shown[#shown + 1] = {cursor, state, name, id, p, '', 0, '', 0, s, reason, at, text(j), '', err, history, '', keep,
        outcome}
end

local function show_place(name, q, id, place)
    if place == 'r' then
        local r = call('HGET', q .. ':rest', id)
        if r then
            show_rest('', name, q, id, r)
        end
        return
    end
    local p, entry = place:match('^(%d):(.+)$')
    local stream = q .. ':p' .. p
    local j, s = entry_at(stream, entry)
    if j then
        local pending = try('XPENDING', stream, GROUP, entry, entry, 1)[1]
        show_entry('', name, q, tonumber(p), entry, pending and pending[4] or 0, pending and pending[2] or '', j, s)
    end
end

