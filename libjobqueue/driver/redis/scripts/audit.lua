-- SPDX-License-Identifier: MIT
--
-- Does every job of the queue stand in exactly one state? One page. ARGV: about how many jobs, cursor "part.place" ('' =
-- from the start). Parts: 9 to 0 the streams (place: the last entry), r the records at rest, d, o and x the sets of
-- delayed, done and dead ones, i the index, n the followers (place: the scan's). Answers the next cursor ('' = this was the
-- last page), five numbers (jobs that stand in one state, by state), a list: per stray id, states (bits), 1 = nobody's.
local q, left, bytes = KEYS[1], tonumber(ARGV[1]), 0
local MOST_BYTES, STEP = 16777216, 50
local part, place = ARGV[2]:match('^(.)%.(.*)$')
local seen, strays, workers = {0, 0, 0, 0, 0}, {}, {}
local SETS = {[1] = ':delayed', [3] = ':done', [4] = ':dead'}

local function stray(id, states, ownerless)
    for _, v in ipairs({id, states, ownerless and 1 or 0}) do
        strays[#strays + 1] = v
    end
end

local function has_record(worker)
    if workers[worker] == nil then
        workers[worker] = call('ZSCORE', q .. ':workers', worker) ~= false
    end
    return workers[worker]
end

-- The state of an entry: held by a worker or not.
local function state_of(consumer)
    return consumer and consumer:sub(1, 1) == 'w' and 2 or 0
end

local function entry_state(stream, entry)
    local one = try('XPENDING', stream, GROUP, entry, entry, 1)[1]
    return state_of(one and one[2])
end

-- The states that the record at rest of a job stands in.
local function states_at_rest(id, r)
    local states, state = 0, #r >= 108 and r:byte(99) or 0
    for which, set in pairs(SETS) do
        local retained = which == 3 and state == 4 -- the end of a dead one's time
        if not retained and call('ZSCORE', q .. set, id) then
            states = states + 2 ^ which
        end
    end
    return states
end

local function count(state)
    seen[state + 1] = seen[state + 1] + 1
end

local here = {} -- ids of this page: those that the library made are in no index

local function look_at_entry(stream, p, entry, fields, consumer)
    local j, _ = parts(fields)
    local id, state = identity(j, p .. '-' .. entry), state_of(consumer)
    local states, listed = 2 ^ state, call('HGET', q .. ':ids', id)
    local r = call('HEXISTS', q .. ':rest', id) == 1 and call('HGET', q .. ':rest', id)
    left, bytes = left - 1, bytes + #j
    if r then
        stray(id, states + states_at_rest(id, r), false)
    elseif listed and listed ~= 'r' and listed ~= p .. ':' .. entry and
        entry_at(q .. ':p' .. listed:sub(1, 1), listed:sub(3)) then
        local other = 2 ^ entry_state(q .. ':p' .. listed:sub(1, 1), listed:sub(3))
        stray(id, other == states and states or states + other, false)
    elseif here[id] then
        stray(id, states, false)
    elseif state == 2 and not has_record(consumer:sub(2)) then
        stray(id, states, true)
    else
        count(state)
    end
    here[id] = true
end

local function look_at_stream(p)
    local stream, from = q .. ':p' .. p, place == '' and '-' or '(' .. place
    while left > 0 and bytes < MOST_BYTES do
        local page, held = try('XRANGE', stream, from, '+', 'COUNT', math.min(left, STEP)), {}
        if #page == 0 then
            return ''
        end
        local pending = try('XPENDING', stream, GROUP, page[1][1], page[#page][1], 10000)
        for i = 1, #pending do
            held[pending[i][1]] = pending[i][2]
        end
        for i = 1, #page do
            look_at_entry(stream, p, page[i][1], page[i][2], held[page[i][1]])
        end
        place = page[#page][1]
        from = '(' .. place
    end
    return place
end

local looks = {}

function looks.r(id, r)
    local states = states_at_rest(id, r)
    local state = #r >= 108 and r:byte(99) or 9
    bytes = bytes + #r
    if states == 2 ^ state then
        count(state)
    else
        stray(id, states, false)
    end
end

local function look_at_member(state)
    return function(id)
        if call('HEXISTS', q .. ':rest', id) == 0 then
            stray(id, 2 ^ state, false)
        end
    end
end
looks.d, looks.o, looks.x = look_at_member(1), look_at_member(3), look_at_member(4)

function looks.i(id, at)
    local there = id:find('^malformed%-') or (at == 'r' and call('HEXISTS', q .. ':rest', id) == 1)
    if not there and at ~= 'r' then
        local j = entry_at(q .. ':p' .. at:sub(1, 1), at:sub(3))
        there = j and identity(j, '') == id
    end
    if not there then
        stray(id, 0, false)
    end
end

function looks.n(key, id)
    if call('HEXISTS', q .. ':unique', key) == 0 or call('HEXISTS', q .. ':rest', id) == 0 then
        stray(id, 0, false)
    end
end

local function look_at_all(which, command, key)
    place = place == '' and '0' or place
    repeat
        local got = call(command, q .. key, place, 'COUNT', math.min(left, STEP))
        for i = 1, #got[2], 2 do
            looks[which](got[2][i], got[2][i + 1])
            left = left - 1
        end
        place = got[1]
    until place == '0' or left <= 0 or bytes >= MOST_BYTES
    return place == '0' and '' or place
end

local ORDER = '9876543210rdoxin'
local SCANS = {r = {'HSCAN', ':rest'}, d = {'ZSCAN', ':delayed'}, o = {'ZSCAN', ':done'}, x = {'ZSCAN', ':dead'},
    i = {'HSCAN', ':ids'}, n = {'HSCAN', ':next'}}
part, place = part or '9', place or ''
local at = ORDER:find(part, 1, true) or #ORDER + 1
while at <= #ORDER and left > 0 and bytes < MOST_BYTES do
    part = ORDER:sub(at, at)
    if SCANS[part] then
        place = look_at_all(part, unpack(SCANS[part]))
    else
        place = look_at_stream(part)
    end
    at = place == '' and at + 1 or at
end
part = ORDER:sub(at, at)
return {part == '' and '' or part .. '.' .. place, seen[1], seen[2], seen[3], seen[4], seen[5], strays}
