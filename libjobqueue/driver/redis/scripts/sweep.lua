-- SPDX-License-Identifier: MIT
--
-- Records that somebody has deleted are made again. Hand-outs whose worker has none (or lost it just before the
-- worker read) get one that lapses unless the worker renews it; streams and jobs at rest that nothing lists are
-- listed. ARGV: its lease. Answers how many.
local STEPS, STEP = 10, 100 -- jobs looked at in one go, bodies included
local q, lost, unlisted, astray, now = KEYS[1], {}, {}, {}, clock()
local sets = {':delayed', nil, ':done', ':dead'}

local function find_in(stream)
    local pending = try('XPENDING', stream, GROUP)
    for _, one in ipairs(pending[4] or {}) do
        local worker = one[1]:sub(1, 1) == 'w' and one[1]:sub(2)
        if worker and not call('ZSCORE', q .. ':workers', worker) then
            lost[#lost + 1] = worker
        end
    end
end

local function find_in_streams()
    local used = call('GET', q .. ':prios') or ''
    for p = 0, 9 do
        local stream = q .. ':p' .. p
        if call('EXISTS', stream) == 1 then
            if not used:find(p, 1, true) then
                unlisted[#unlisted + 1] = p
            end
            find_in(stream)
        end
    end
end

local function look_at(id, r)
    local state = #r >= 108 and r:byte(99)
    local set = state and sets[state]
    if set and not call('ZSCORE', q .. set, id) then
        local s, _, _, _, at = rest_parts(r)
        local _, _, _, _, available = standing(s, '', 0)
        astray[#astray + 1] = {q .. set, state == 1 and available or at, id}
    end
end

-- Answers from where to go on.
local function find_astray()
    local known = call('ZCARD', q .. ':delayed') + call('ZCARD', q .. ':done') + call('ZCARD', q .. ':dead')
    if call('HLEN', q .. ':rest') <= known then
        return '0'
    end
    local from = call('GET', q .. ':swept') or '0'
    for _ = 1, STEPS do
        local got = call('HSCAN', q .. ':rest', from, 'COUNT', STEP)
        for i = 1, #got[2], 2 do
            look_at(got[2][i], got[2][i + 1])
        end
        from = got[1]
        if from == '0' then
            break
        end
    end
    return from
end

find_in_streams()
local place = find_astray()
begin_writes(q)
for _, p in ipairs(unlisted) do
    ensure_stream(q, p)
end
for _, worker in ipairs(lost) do
    local key = q .. ':w:' .. worker
    call('ZADD', q .. ':workers', now + ARGV[1], worker)
    call('HSETNX', key, 'lease', ARGV[1])
    call('HSETNX', key, 'started', now)
    call('PERSIST', key)
end
for _, one in ipairs(astray) do
    call('ZADD', one[1], one[2], one[3])
end
if place == '0' then
    call('DEL', q .. ':swept')
else
    call('SET', q .. ':swept', place, 'EX', 600)
end
return #lost + #unlisted + #astray
