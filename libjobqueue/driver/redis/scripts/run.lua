-- SPDX-License-Identifier: MIT
--
-- Texts of the caller's (guards, effects), put before the scripts that run some. A text is a chunk of its own with
-- KEYS[1] = the base of the queue and its values as ARGV. strict: on a Cluster it may use keys of the queue's slot
-- only; others are refused. Answers true and what it returned, or false and an error to answer with.
local function run(what, text, q, values, strict)
    local mine = redis
    local function in_slot(...)
        local keys = redis.pcall('COMMAND', 'GETKEYS', ...)
        for _, key in ipairs(keys.err and {} or keys) do
            if redis.call('CLUSTER', 'KEYSLOT', key) ~= redis.call('CLUSTER', 'KEYSLOT', q) then
                error('the key ' .. key .. ' is in another slot than the queue (allowed: keys that begin with ' ..
                    q:match('^%b{}') .. ')', 0)
            end
        end
        return ...
    end
    if strict then
        mine = setmetatable({
            call = function(...) return redis.call(in_slot(...)) end,
            pcall = function(...) return redis.pcall(in_slot(...)) end,
        }, {__index = redis})
    end
    local chunk, said = loadstring('local redis, KEYS, ARGV = ...; ' .. text, '=' .. what)
    local good, value = false, said
    if chunk then
        good, value = pcall(chunk, mine, {q}, values)
    end
    if good and (type(value) ~= 'table' or not value.err) then
        return true, value
    end
    said = type(value) == 'table' and (value.err or 'it answered nothing') or tostring(value)
    for _, passing in ipairs({'OOM ', 'READONLY ', 'MISCONF ', 'NOREPLICAS '}) do
        if said:find(passing, 1, true) == 1 then
            return false, {err = said}
        end
    end
    return false, {err = 'REFUSED the ' .. what .. ' is refused: ' .. said:gsub('[\r\n]', ' ')}
end
