-- SPDX-License-Identifier: MIT
-- with show.lua
--
-- One job by its id. ARGV: id, the time in it (-1: none), about how many entries it may look at.
local id, ms = ARGV[1], tonumber(ARGV[2])
local place = call('HGET', G .. ':ids', id)
if place then
    show_place(place:match('^%S+ (.*)$'), id, place:match('^%S+'))
    return shown
end

-- Fresh entries have been added soon after their id was made; by a clock that may differ, and later when the
-- server stood still. So from the time in the id forwards, then backwards, for a day.
local DAY, EARLIER = 86400000, 5

local function search(stream, command, from, to, left)
    while left > 0 do
        local count = math.min(left, 500)
        local page = try(command, stream, from, to, 'COUNT', count)
        for i = 1, #page do
            if identity(parts(page[i][2]), '') == id then
                return page[i][1]
            end
        end
        if #page < count then
            return nil
        end
        left, from = left - count, '(' .. page[count][1]
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
local streams = {}
for _, name in ipairs(names) do
    for _, p in ipairs(priorities(base(name))) do
        streams[#streams + 1] = {name, p, base(name) .. ':p' .. p}
    end
end
local start, share = math.max(ms - EARLIER, 0), math.ceil(tonumber(ARGV[3]) / 2 / math.max(#streams, 1))
for _, way in ipairs({{'XRANGE', start, ms + DAY}, {'XREVRANGE', '(' .. start, math.max(ms - DAY, 0)}}) do
    for _, stream in ipairs(streams) do
        local entry = search(stream[3], way[1], way[2], way[3], share)
        if entry then
            show_place(stream[1], id, stream[2] .. ':' .. entry)
            return shown
        end
    end
end
return shown
