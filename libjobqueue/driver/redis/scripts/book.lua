-- SPDX-License-Identifier: MIT
--
-- What happened on the queue in one minute is added to what is there of it; after 24 hours it goes by itself. ARGV: the
-- minute, then place and number of each count that is not 0.
local key = KEYS[1] .. ':m:' .. ARGV[1]
begin_writes(KEYS[1])
for i = 2, #ARGV, 2 do
    call('HINCRBY', key, ARGV[i], ARGV[i + 1])
end
call('PEXPIREAT', key, (ARGV[1] + 1441) * 60000)
