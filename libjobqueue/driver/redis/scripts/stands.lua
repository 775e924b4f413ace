-- SPDX-License-Identifier: MIT
--
-- For somebody who waits for the end of a job: has it ended? From now on ends are told. ARGV: id, the time in it (-1:
-- none), about how many entries may be looked at, for how long. Answers 1 = it has, or is not here; where it stands;
-- the last end told so far.
local q, id = KEYS[1], ARGV[1]
local place = locate(q, id, tonumber(ARGV[2]), tonumber(ARGV[3]))
local r = place == 'r' and call('HGET', q .. ':rest', id)
local last = call('XREVRANGE', q .. ':ended', '+', '-', 'COUNT', 1)[1]
begin_writes(q)
call('SET', q .. ':awaited', 1, 'PX', ARGV[4])
return {(not place or (place == 'r' and (not r or r:byte(99) ~= 1))) and 1 or 0, place or '', last and last[1] or '0-0'}
