-- SPDX-License-Identifier: MIT
--
-- What a worker holds in this queue. ARGV: worker. Answers per hand-out: priority, entry, delivery count, id, flags,
-- 1 = it has stood elsewhere, 1 = marked as taken back, fence, 1 or 2 = it is to end (soft, hard).
local q, answer = KEYS[1], {}
for _, p in ipairs(priorities(q)) do
    local stream = q .. ':p' .. p
    local pending = try('XPENDING', stream, GROUP, '-', '+', 10000, 'w' .. ARGV[1])
    for k = 1, #pending do
        local entry, count = pending[k][1], pending[k][4]
        local j, s = entry_at(stream, entry)
        if j then
            local id, flags = identity(j, p .. '-' .. entry)
            local _, fence = standing(s, entry, count)
            s = told_standing(q, p, entry, j, s)
            local marked = call('HEXISTS', q .. ':taken', p .. ':' .. entry)
            local row = {p, entry, count, id, flags, s == '' and 0 or 1, marked, fence, wish(q, p, entry, s)}
            for _, v in ipairs(row) do
                answer[#answer + 1] = v
            end
        end
    end
end
return answer
