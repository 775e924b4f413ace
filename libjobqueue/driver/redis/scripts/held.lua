-- SPDX-License-Identifier: MIT
--
-- What a worker holds. ARGV: worker. Answers per hand-out: queue, its hash, priority, entry, delivery count,
-- id, flags, 1 = it has stood elsewhere, 1 = marked as taken back, fence.
local record, answer = call('HGETALL', G .. ':w:' .. ARGV[1]), {}
for i = 1, #record, 2 do
    if record[i]:sub(1, 2) == 'q:' then
        local name = record[i]:sub(3)
        local q = base(name)
        for _, p in ipairs(priorities(q)) do
            local stream = q .. ':p' .. p
            local pending = try('XPENDING', stream, GROUP, '-', '+', 10000, 'w' .. ARGV[1])
            for k = 1, #pending do
                local entry, count = pending[k][1], pending[k][4]
                local j, s = entry_at(stream, entry)
                if j then
                    local id, flags = identity(j, p .. '-' .. entry)
                    local _, fence = standing(s, entry, count)
                    local marked = call('HEXISTS', q .. ':taken', p .. ':' .. entry)
                    local row = {name, record[i + 1], p, entry, count, id, flags, s == '' and 0 or 1, marked, fence}
                    for _, v in ipairs(row) do
                        answer[#answer + 1] = v
                    end
                end
            end
        end
    end
end
return answer
