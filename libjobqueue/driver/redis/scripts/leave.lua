-- SPDX-License-Identifier: MIT
--
-- A worker ends: its record in this queue goes if it holds nothing here. ARGV: worker, 1 = only look. Answers 1 = it
-- holds something.
local q, consumer, streams = KEYS[1], 'w' .. ARGV[1], {}
for _, p in ipairs(priorities(q)) do
    local stream = q .. ':p' .. p
    local one = try('XPENDING', stream, GROUP, '-', '+', 1, consumer)
    if one[1] then
        return 1
    end
    streams[#streams + 1] = not one.err and stream or nil
end
if ARGV[2] == '1' then
    return 0
end
for i = 1, #streams do
    call('XGROUP', 'DELCONSUMER', streams[i], GROUP, consumer)
end
call('ZREM', q .. ':workers', ARGV[1])
call('DEL', q .. ':w:' .. ARGV[1])
return 0
