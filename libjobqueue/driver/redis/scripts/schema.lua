-- SPDX-License-Identifier: MIT
--
-- The version of the layout. KEYS[1]: the base of the prefix. ARGV: the version this library makes. Answers the one
-- that is there.
local there = call('GET', KEYS[1] .. ':schema')
if not there or tonumber(there) == 2 then -- version 2 has only less
    begin_writes(KEYS[1])
    call('SET', KEYS[1] .. ':schema', ARGV[1])
    return tonumber(ARGV[1])
end
return tonumber(there)
