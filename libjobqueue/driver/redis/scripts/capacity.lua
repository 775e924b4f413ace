-- SPDX-License-Identifier: MIT
--
-- How many jobs the queue may have. ARGV: number (0: no limit), r = only read, n = only if none was ever set, s = set.
-- With a limit the streams are closed (lib.lua). Answers the one that holds now.
local q = KEYS[1]
local there = call('HGET', q .. ':limit', 'capacity')
if ARGV[2] == 'r' or (there and ARGV[2] == 'n') then
    return there or '0'
end
local used, last = call('GET', q .. ':prios') or '', nil
local closed = used:find('c', 1, true) ~= nil

local function last_of(stream)
    local about = try('XINFO', 'STREAM', stream)
    for i = 1, #about, 2 do
        if about[i] == 'last-generated-id' then
            return about[i + 1]
        end
    end
end

begin_writes(q)
call('HSET', q .. ':limit', 'capacity', ARGV[1])
if closed == (ARGV[1] ~= '0') then
    return ARGV[1]
end
for p in used:gmatch('%d') do
    local stream = q .. ':p' .. p
    last = last_of(stream)
    if last and not closed and last ~= LAST then
        call('HSET', q .. ':limit', p, last)
        call('XSETID', stream, LAST)
    elseif last == LAST and closed then
        call('XSETID', stream, call('HGET', q .. ':limit', p) or '0-1')
    end
end
if closed then
    call('SET', q .. ':prios', (used:gsub('c', '')))
else
    call('SET', q .. ':prios', used .. 'c')
end
return ARGV[1]
