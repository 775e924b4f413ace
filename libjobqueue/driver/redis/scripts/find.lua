-- SPDX-License-Identifier: MIT
-- with show.lua
--
-- One job by its id. ARGV: id, the time in it (-1: none).
local id, ms = ARGV[1], tonumber(ARGV[2])
local place = call('HGET', G .. ':ids', id)
if place then
    show_place(place:match('^%S+ (.*)$'), id, place:match('^%S+'))
    return shown
end

-- Fresh entries have been added soon after their id was made, by a clock that may differ.
local WINDOWS = {{5, 50}, {1000, 5000}, {60000, 60000}, {86400000, 86400000}}
local SCAN = 20000

local function search(stream, from, to)
    local left, start = SCAN, from
    while left > 0 do
        local page = redis.pcall('XRANGE', stream, start, to, 'COUNT', 500)
        for i = 1, #page do
            if identity(parts(page[i][2]), '') == id then
                return page[i][1]
            end
        end
        if #page < 500 then
            return nil
        end
        left, start = left - #page, '(' .. page[#page][1]
    end
end

local names = call('SMEMBERS', G .. ':queues')
for _, name in ipairs(names) do
    if call('HEXISTS', base(name) .. ':rest', id) == 1 then
        show_place(name, id, 'r')
        return shown
    end
end
local malformed = id:match('^malformed%-(%d%-%d+%-%d+)$')
for _, name in ipairs(malformed and names or {}) do
    show_place(name, id, (malformed:gsub('-', ':', 1)))
end
if malformed or ms < 0 then
    return shown
end
for _, window in ipairs(WINDOWS) do
    for _, name in ipairs(names) do
        for _, p in ipairs(priorities(base(name))) do
            local entry = search(base(name) .. ':p' .. p, math.max(ms - window[1], 0), ms + window[2])
            if entry then
                show_place(name, id, p .. ':' .. entry)
                return shown
            end
        end
    end
end
return shown
