-- SPDX-License-Identifier: MIT
-- with show.lua
--
-- A page of one queue's jobs. ARGV: queue, state, at most so many, 1 = keys only, cursor of the last one shown
-- ('' = from the start): "A.B.KEY" as each part below says.
local name, wanted, limit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
keys_only = ARGV[4] == '1'
local a, b, last = ARGV[5]:match('^(%d+)%.(%d+)%.(.*)$')
a, b = tonumber(a or 0), tonumber(b or 0)
local q = KEYS[1]

local function is_live(consumer)
    return consumer:sub(1, 1) == 'w' and tonumber(call('ZSCORE', q .. ':workers', consumer:sub(2)) or 0) > now
end

-- Entries of a stream that no live worker holds.
local function pending(rank, p, after)
    local stream, from = q .. ':p' .. p, after and '(' .. after or '-'
    while #shown < limit do
        local page = try('XPENDING', stream, GROUP, from, '+', 500)
        for i = 1, #page do
            local entry, consumer = page[i][1], page[i][2]
            local j, s
            if #shown < limit and not is_live(consumer) then
                j, s = entry_at(stream, entry)
            end
            if j then
                show_entry(rank .. '.0.' .. entry, name, q, p, entry, page[i][4], consumer, j, s)
            end
        end
        if #page < 500 then
            return
        end
        from = '(' .. page[#page][1]
    end
end

local function undelivered(rank, p, after)
    local stream, from = q .. ':p' .. p, after
    local group = try('XINFO', 'GROUPS', stream)[1] or {}
    for i = 1, #group, 2 do
        if group[i] == 'last-delivered-id' then
            local delivered = group[i + 1]
            if not from or before(from, delivered) then
                from = delivered
            end
        end
    end
    if not from or #shown >= limit then
        return
    end
    for _, e in ipairs(call('XRANGE', stream, '(' .. from, '+', 'COUNT', limit - #shown)) do
        local j, s = parts(e[2])
        show_entry(rank .. '.1.' .. e[1], name, q, p, e[1], 0, '', j, s)
    end
end

-- Jobs at rest by their time, later than `from` (nil: all), behind a time and id; `keep` says which. KEY: "time.id".
local function resting(set, rank, section, keep, from, to, after)
    local key = q .. set
    local at, id = (after or ''):match('^(%d+)%.(.*)$')
    local place = math.max(from and call('ZCOUNT', key, '-inf', from) or 0, at and rank_of(key, at, id .. '\0') or 0)
    local over = call('ZCOUNT', key, '-inf', to)
    while #shown < limit and place < over do
        local page = call('ZRANGE', key, place, math.min(place + 500, over) - 1, 'WITHSCORES')
        for i = 1, #page, 2 do
            local r = #shown < limit and call('HGET', q .. ':rest', page[i])
            if r and keep(r) then
                show_rest(rank .. '.' .. section .. '.' .. page[i + 1] .. '.' .. page[i], name, q, page[i], r)
            end
        end
        place = place + 500
    end
end

local function delayed(r)
    return r:byte(99) == 1
end

local function done(r) -- dead ones that are kept for a time stand in the same set
    return r:byte(99) == 3
end

-- rank 0 to 9: priorities from 9 down; section 0: given or taken back, 1: new, 2: due and not promoted.
local function ready()
    for _, p in ipairs(priorities(q)) do
        local rank = 9 - p
        local from = last and a == rank and b or 0
        local behind = last and a == rank and last or nil
        if not last or rank >= a then
            if from == 0 then
                pending(rank, p, behind)
            end
            if from <= 1 then
                undelivered(rank, p, from == 1 and behind or nil)
            end
            resting(':delayed', rank, 2, function(r)
                return r:byte(98) == p
            end, nil, now, from == 2 and behind or nil)
        end
    end
end

-- Over all priorities, in push order; entries of two streams may have the same number. KEY: "entry.id".
local function reserved()
    local last_entry, last_id = (last or ''):match('^(%d+%-%d+)%.(.*)$')
    local heads = {}

    -- The next of a stream that a live worker holds, behind the cursor.
    local function advance(head)
        head.entry = nil
        while not head.entry do
            if not head.page[head.at] then
                head.page, head.at = try('XPENDING', q .. ':p' .. head.p, GROUP, head.from, '+', 200), 1
                if #head.page == 0 then
                    return
                end
                head.from = '(' .. head.page[#head.page][1]
            end
            local one = head.page[head.at]
            head.at = head.at + 1
            head.j, head.s = nil, nil
            if is_live(one[2]) then
                head.j, head.s = entry_at(q .. ':p' .. head.p, one[1])
            end
            if head.j then
                head.id = identity(head.j, head.p .. '-' .. one[1])
                if one[1] ~= last_entry or head.id > last_id then
                    head.entry, head.count, head.consumer = one[1], one[4], one[2]
                end
            end
        end
    end

    for _, p in ipairs(priorities(q)) do
        local head = {p = p, page = {}, at = 1, from = last_entry or '-'}
        advance(head)
        heads[#heads + 1] = head
    end
    while #shown < limit do
        local best
        for _, head in ipairs(heads) do
            if head.entry and (not best or before(head.entry, best.entry) or
                (head.entry == best.entry and head.id < best.id)) then
                best = head
            end
        end
        if not best then
            return
        end
        show_entry('0.0.' .. best.entry .. '.' .. best.id, name, q, best.p, best.entry, best.count, best.consumer,
            best.j, best.s)
        advance(best)
    end
end

if wanted == 0 then
    ready()
elseif wanted == 1 then
    resting(':delayed', 0, 0, delayed, now, '+inf', last)
elseif wanted == 2 then
    reserved()
else
    resting(':done', 0, 0, done, nil, '+inf', last)
end
return shown
