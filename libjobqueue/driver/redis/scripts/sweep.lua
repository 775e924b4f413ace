-- SPDX-License-Identifier: MIT
--
-- Records that somebody has deleted are made again. Hand-outs whose worker has none (or lost it just before the
-- worker read) get one that lapses unless the worker renews it; streams and jobs at rest that nothing lists are
-- listed, streams of a queue with a capacity are closed, followers of nobody take their key. ARGV: its lease. Answers how
-- many.
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
        available = at == 1 and FAR or available
        astray[#astray + 1] = {q .. set, state == 1 and available or at, id}
    end
end

-- Answers from where to go on.
local function find_astray()
    local dead, done = call('ZCARD', q .. ':dead'), call('ZCARD', q .. ':done')
    local known = call('ZCARD', q .. ':delayed') + math.max(dead, done) -- dead ones may be in both
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

-- They were made again without it, or their list was.
local function close_streams()
    local used = call('GET', q .. ':prios') or ''
    if not used:find('c', 1, true) then
        call('SET', q .. ':prios', used .. 'c')
    end
    for p in used:gmatch('%d') do
        local about, last = try('XINFO', 'STREAM', q .. ':p' .. p), LAST
        for i = 1, #about, 2 do
            last = about[i] == 'last-generated-id' and about[i + 1] or last
        end
        if last ~= LAST then
            call('HSET', q .. ':limit', p, last)
            call('XSETID', q .. ':p' .. p, LAST)
        end
    end
end

local followers = call('HRANDFIELD', q .. ':next', STEP, 'WITHVALUES')
find_in_streams()
local place = find_astray()
begin_writes(q)
for _, p in ipairs(unlisted) do
    ensure_stream(q, p)
end
if (call('HGET', q .. ':limit', 'capacity') or '0') ~= '0' then
    close_streams()
end
for i = 1, #followers, 2 do
    if call('HEXISTS', q .. ':unique', followers[i]) == 0 then
        call('HSET', q .. ':unique', followers[i], '')
        free_unique(q, followers[i], '')
    end
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
