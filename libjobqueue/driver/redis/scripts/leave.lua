-- SPDX-License-Identifier: MIT
--
-- A worker ends: its record goes if it holds nothing. ARGV: worker.
local key, consumer = G .. ':w:' .. ARGV[1], 'w' .. ARGV[1]
local record, streams = call('HGETALL', key), {}
for i = 1, #record, 2 do
    if record[i]:sub(1, 2) == 'q:' then
        local q = base(record[i]:sub(3))
        for _, p in ipairs(priorities(q)) do
            local stream = q .. ':p' .. p
            local one = try('XPENDING', stream, GROUP, '-', '+', 1, consumer)
            if one[1] then
                return 0
            end
            streams[#streams + 1] = not one.err and stream or nil
        end
    end
end
for i = 1, #streams do
    call('XGROUP', 'DELCONSUMER', streams[i], GROUP, consumer)
end
call('ZREM', G .. ':alive', ARGV[1])
call('DEL', key)
return 1
