-- SPDX-License-Identifier: MIT
--
-- The version of the layout. ARGV: the version this library makes. Answers the one that is there.
local there = call('GET', G .. ':schema')
if not there then
    call('SET', G .. ':schema', ARGV[1])
    return tonumber(ARGV[1])
end
return tonumber(there)
