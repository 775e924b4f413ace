-- SPDX-License-Identifier: MIT
--
-- Records that somebody has deleted are made again. Hand-outs whose worker has none (or lost it just before the
-- worker read) get one that lapses unless the worker renews it; streams, jobs at rest and due times that nothing
-- lists are listed. ARGV: its lease; per queue: name, hash. Answers how many.
local STEPS, STEP = 10, 100 -- jobs looked at in one go, bodies included
local lost, unlisted, astray, now = {}, {}, {}, clock()
local sets = {':delayed', nil, ':done', ':dead'}

local function find_in(stream, name, hash)
    local pending = try('XPENDING', stream, GROUP)
    for _, one in ipairs(pending[4] or {}) do
        local worker = one[1]:sub(1, 1) == 'w' and one[1]:sub(2)
        if worker and not call('ZSCORE', G .. ':alive', worker) then
            lost[#lost + 1] = {worker, name, hash}
        end
    end
end

local function find_in_streams(q, name, hash)
    local used = call('GET', q .. ':prios') or ''
    for p = 0, 9 do
        local stream = q .. ':p' .. p
        if call('EXISTS', stream) == 1 then
            if not used:find(p, 1, true) then
                unlisted[#unlisted + 1] = {q, name, p}
            end
            find_in(stream, name, hash)
        end
    end
end

local function look_at(q, id, r)
    local state = #r >= 108 and r:byte(99)
    local set = state and sets[state]
    if set and not call('ZSCORE', q .. set, id) then
        local s, _, _, _, at = rest_parts(r)
        local _, _, _, _, available = standing(s, '', 0)
        astray[#astray + 1] = {q .. set, state == 1 and available or at, id}
    end
end

-- Answers from where to go on.
local function find_astray(q)
    local known = call('ZCARD', q .. ':delayed') + call('ZCARD', q .. ':done') + call('ZCARD', q .. ':dead')
    if call('HLEN', q .. ':rest') <= known then
        return '0'
    end
    local from = call('GET', q .. ':swept') or '0'
    for _ = 1, STEPS do
        local got = call('HSCAN', q .. ':rest', from, 'COUNT', STEP)
        for i = 1, #got[2], 2 do
            look_at(q, got[2][i], got[2][i + 1])
        end
        from = got[1]
        if from == '0' then
            break
        end
    end
    return from
end

local function note_first(q, name)
    local known = tonumber(call('ZSCORE', G .. ':due', name) or math.huge)
    for _, set in ipairs({':delayed', ':done'}) do
        local at = tonumber(call('ZRANGE', q .. set, 0, 0, 'WITHSCORES')[2] or math.huge)
        if at < known then
            note_due(name, at)
            known = at
        end
    end
end

local places = {}
for i = 2, #ARGV, 2 do
    local q = base(ARGV[i])
    find_in_streams(q, ARGV[i], ARGV[i + 1])
    places[i] = find_astray(q)
end
begin_writes()
for _, one in ipairs(unlisted) do
    ensure_stream(one[1], one[2], one[3])
end
for _, one in ipairs(lost) do
    call('ZADD', G .. ':alive', now + ARGV[1], one[1])
    call('HSET', G .. ':w:' .. one[1], 'q:' .. one[2], one[3])
    call('HSETNX', G .. ':w:' .. one[1], 'lease', ARGV[1])
    call('HSETNX', G .. ':w:' .. one[1], 'started', now)
    call('PERSIST', G .. ':w:' .. one[1])
end
for _, one in ipairs(astray) do
    call('ZADD', one[1], one[2], one[3])
end
for i = 2, #ARGV, 2 do
    local q = base(ARGV[i])
    if places[i] == '0' then
        call('DEL', q .. ':swept')
    else
        call('SET', q .. ':swept', places[i], 'EX', 600)
    end
    note_first(q, ARGV[i])
end
return #lost + #unlisted + #astray
