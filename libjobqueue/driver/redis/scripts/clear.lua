-- SPDX-License-Identifier: MIT
--
-- Removes what waits in a queue: given and taken back, new, delayed. ARGV: at most so many. Answers how many, 1 = there
-- may be more.
local q, limit = KEYS[1], tonumber(ARGV[1])
local MOST_BYTES, STEP = 16777216, 50
local left, bytes = limit, 0

local function over()
    return left <= 0 or bytes > MOST_BYTES
end

local function forget_entry(stream, p, entry, j)
    local id, _, unique = identity(j, p .. '-' .. entry)
    call('XACK', stream, GROUP, entry)
    call('XDEL', stream, entry)
    forget_job(q, id, unique)
    call('HDEL', q .. ':taken', p .. ':' .. entry)
    call('HDEL', q .. ':cancel', p .. ':' .. entry, 'o' .. p .. ':' .. entry)
    left, bytes = left - 1, bytes + #j
end

local function clear_given(stream, p, consumer)
    while not over() do
        local page = try('XPENDING', stream, GROUP, '-', '+', math.min(left, STEP), consumer)
        for i = 1, #page do
            if over() then
                return
            end
            local j = entry_at(stream, page[i][1])
            if j then
                forget_entry(stream, p, page[i][1], j)
            else
                call('XACK', stream, GROUP, page[i][1])
            end
        end
        if #page == 0 then
            return
        end
    end
end

local function clear_new(stream, p)
    local group = try('XINFO', 'GROUPS', stream)[1] or {}
    for i = 1, #group, 2 do
        if group[i] == 'last-delivered-id' then
            while not over() do
                local page = call('XRANGE', stream, '(' .. group[i + 1], '+', 'COUNT', math.min(left, STEP))
                for k = 1, #page do
                    if over() then
                        return
                    end
                    forget_entry(stream, p, page[k][1], (parts(page[k][2])))
                end
                if #page == 0 then
                    return
                end
            end
        end
    end
end

local function clear_delayed()
    while not over() do
        local page = call('ZRANGE', q .. ':delayed', 0, math.min(left, STEP) - 1)
        for i = 1, #page do
            if over() then
                return
            end
            local r = call('HGET', q .. ':rest', page[i])
            call('ZREM', q .. ':delayed', page[i])
            call('HDEL', q .. ':rest', page[i])
            if r then -- else a follower that has just become ready, or nothing
                local _, _, _, _, _, j = rest_parts(r)
                local _, _, unique = identity(j, '')
                forget_job(q, page[i], unique)
                left, bytes = left - 1, bytes + #r
            end
        end
        if #page == 0 then
            return
        end
    end
end

-- A follower may become ready behind the place that is being cleared.
begin_writes(q)
local followed, before_it = call('EXISTS', q .. ':next') == 1, nil
repeat
    before_it = left
    for _, p in ipairs(priorities(q)) do
        local stream = q .. ':p' .. p
        clear_given(stream, p, TAKEN)
        clear_given(stream, p, BACK)
        clear_new(stream, p)
    end
    clear_delayed()
until not followed or left == before_it or over()
return {limit - left, over() and 1 or 0}
