-- SPDX-License-Identifier: MIT
-- with run.lua
--
-- A text of the caller's, run only while the hand-out is current. ARGV: consumer, priority, entry, its delivery count, 1 =
-- of a Cluster, text, values. Answers: 1 = it is not current; or 0, what the text returned: kind (n nothing, i integer, d
-- other number, t text), value.
local q, stream = KEYS[1], KEYS[1] .. ':p' .. ARGV[2]
local one = try('XPENDING', stream, GROUP, ARGV[3], ARGV[3], 1, ARGV[1])[1]
if not one or one[4] ~= tonumber(ARGV[4]) or not entry_at(stream, ARGV[3]) then
    return {1}
end
local good, value = run('effect', ARGV[6], q, {unpack(ARGV, 7)}, ARGV[5] == '1')
if not good then
    return value
end
if type(value) == 'table' then
    value = value.ok or value[1]
end
if type(value) == 'number' then
    local whole = value == math.floor(value) and math.abs(value) < FAR
    return {0, whole and 'i' or 'd', whole and value or string.format('%.17g', value)}
elseif type(value) == 'boolean' then
    return {0, value and 'i' or 'n', 1}
elseif type(value) ~= 'string' then
    return {0, 'n', ''}
end
return {0, 't', value}
