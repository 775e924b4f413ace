-- SPDX-License-Identifier: MIT
--
-- What may the account do? Each command is tried on a key that never stays. Answers the first refusal of each that is not
-- allowed.
local key, refused = KEYS[1] .. ':nothing', {}
local tries = {
    {'DEL', key}, {'TIME'}, {'EXISTS', key}, {'GET', key}, {'SET', key, '1', 'PX', '1000'}, {'INCR', key},
    {'PERSIST', key}, {'PEXPIRE', key, '1000'}, {'PEXPIREAT', key, '1'}, {'DEL', key},
    {'HSET', key, 'a', '1'}, {'HSETNX', key, 'a', '1'}, {'HGET', key, 'a'}, {'HMGET', key, 'a'}, {'HGETALL', key},
    {'HINCRBY', key, 'a', '1'}, {'HLEN', key}, {'HEXISTS', key, 'a'}, {'HSCAN', key, '0'},
    {'HRANDFIELD', key, '1', 'WITHVALUES'}, {'HDEL', key, 'a'}, {'DEL', key},
    {'ZADD', key, '1', 'a'}, {'ZSCORE', key, 'a'}, {'ZCARD', key}, {'ZCOUNT', key, '0', '1'}, {'ZRANGE', key, '0', '0'},
    {'ZRANGEBYSCORE', key, '0', '1'}, {'ZSCAN', key, '0'}, {'ZREMRANGEBYSCORE', key, '0', '0'}, {'ZREM', key, 'a'},
    {'SADD', key, 'a'}, {'SMEMBERS', key}, {'DEL', key},
    {'XGROUP', 'CREATE', key, GROUP, '0', 'MKSTREAM'}, {'XADD', key, '*', 'j', ''}, {'XLEN', key},
    {'XRANGE', key, '-', '+', 'COUNT', '1'}, {'XREVRANGE', key, '+', '-', 'COUNT', '1'}, {'XINFO', 'STREAM', key},
    {'XREADGROUP', 'GROUP', GROUP, 'w', 'COUNT', '1', 'STREAMS', key, '>'}, {'XPENDING', key, GROUP},
    {'XCLAIM', key, GROUP, 'w', '0', '1-1'}, {'XACK', key, GROUP, '1-1'}, {'XDEL', key, '1-1'}, {'XSETID', key, LAST},
    {'XGROUP', 'DELCONSUMER', key, GROUP, 'w'}, {'DEL', key},
}
for _, one in ipairs(tries) do
    local said = redis.pcall(unpack(one))
    said = type(said) == 'table' and said.err
    if said and (said:find('NOPERM') or said:find('ACL failure') or said:find("can't run this command") or
        said:find("can't access")) then
        refused[#refused + 1] = one[1] .. ': ' .. said:gsub(' script: %x+, on .*', '')
    end
end
redis.pcall('DEL', key)
return refused
