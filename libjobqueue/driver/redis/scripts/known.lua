-- SPDX-License-Identifier: MIT
--
-- Which of these jobs does the queue have? ARGV: about how many entries may be looked at for each, then per job: id,
-- the time in it (-1: none). Answers their places, from 0 on.
local answer = {}
for i = 2, #ARGV, 2 do
    if locate(KEYS[1], ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[1])) then
        answer[#answer + 1] = (i - 2) / 2
    end
end
return answer
