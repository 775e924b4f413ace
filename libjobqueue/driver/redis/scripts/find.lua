-- SPDX-License-Identifier: MIT
-- with show.lua
--
-- A job of this queue by its id. ARGV: queue, id, the time in it (-1: none), about how many entries may be looked at.
local place = locate(KEYS[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]))
if place then
    show_place(ARGV[1], KEYS[1], ARGV[2], place)
end
return shown
