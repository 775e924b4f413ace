-- SPDX-License-Identifier: MIT
-- with show.lua
--
-- A page of dead jobs of some queues, newest first. ARGV: name ('' = any), reason (0 = any), older than (0 = any), at
-- most so many, 1 = keys only, cursor "time.id" ('' = from the start), the queues. Answers the jobs; when it had
-- looked at enough and found too few, the last element is the cursor to go on from.
local limit, reason = tonumber(ARGV[4]), tonumber(ARGV[2])
keys_only = ARGV[5] == '1'
local last_at, last_id = ARGV[6]:match('^(%d+)%.(.*)$')
local top = tonumber(last_at or now + 1000)
if ARGV[3] ~= '0' then
    top = math.min(top, now - ARGV[3])
end

-- The next of a queue behind the cursor, in pages.
local function walker(name, q)
    local page, at = {}, -1
    local key = q .. ':dead'
    local place = math.min(call('ZCOUNT', key, '-inf', top), last_at and rank_of(key, last_at, last_id) or math.huge)
    return function()
        if at < 1 then
            if place == 0 then
                return nil
            end
            local from = math.max(place - 100, 0)
            page, place = call('ZRANGE', key, from, place - 1, 'WITHSCORES'), from
            at = #page - 1
        end
        at = at - 2
        return {id = page[at + 2], died = tonumber(page[at + 3]), name = name, q = q}
    end
end

local function matches(r)
    local _, _, _, why, _, j = rest_parts(r)
    if reason ~= 0 and why ~= reason then
        return false
    end
    if ARGV[1] == '' then
        return true
    end
    local _, _, id_n, name_n = struct.unpack('<BBBB', j)
    return j:byte(1) == 1 and j:sub(15 + id_n, 14 + id_n + name_n) == ARGV[1]
end

local heads, went_to = {}, nil
for k = 7, #ARGV do
    local next_one = walker(ARGV[k], KEYS[k - 6])
    local first = next_one()
    if first then
        heads[#heads + 1] = {next_one, first}
    end
end
for _ = 1, 2000 do
    local best
    for i = 1, #heads do
        local one, top_one = heads[i][2], best and heads[best][2]
        if one and (not best or one.died > top_one.died or
            (one.died == top_one.died and behind(one.id, top_one.id))) then
            best = i
        end
    end
    if not best or #shown >= limit then
        return shown
    end
    local one = heads[best][2]
    heads[best][2] = heads[best][1]()
    local r = call('HGET', one.q .. ':rest', one.id)
    if r and matches(r) then
        show_rest(one.died .. '.' .. one.id, one.name, one.q, one.id, r)
    end
    went_to = one.died .. '.' .. one.id
end
shown[#shown + 1] = went_to
return shown
