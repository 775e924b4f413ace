--TEST--
Errors: a malformed DSN is a mistake in the call, not a failed connection, and an unknown option gives what is allowed (rule J1; api: errors)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\Queue;

// Also of a store that is not part of the build.
$malformed = ['', 'foo:bar', 'sqlite:', 'sqlite://o.db', 'sqlite::memory:', 'memory:x', 'mysql://', 'mysql://a,b/d', 'mysql:d',
    'redis://h/x', 'redis://h?prefix=', 'redis://a,b', 'redis+unix://', 'redis-sentinel://h', 'redis-cluster://', 'postgresql:x'];
foreach ($malformed as $dsn) {
    echo str_pad($dsn, 20), refused_as(fn () => (new Queue($dsn))->push('x')), "\n";
}
refused(fn () => new Queue('memory:?nope=1'));
refused(fn () => new Queue('memory:', ['nope' => 1]));
refused(fn () => new Queue('memory:?Track=1'));
refused(fn () => new Queue('memory:?READ_TIMOUT=-1'));
refused(fn () => (new Queue('memory:'))->pause(','));
?>
--EXPECTF--
                    ValueError
foo:bar             ValueError
sqlite:             ValueError
sqlite://o.db       ValueError
sqlite::memory:     ValueError
memory:x            ValueError
mysql://            ValueError
mysql://a,b/d       ValueError
mysql:d             ValueError
redis://h/x         ValueError
redis://h?prefix=   ValueError
redis://a,b         ValueError
redis+unix://       ValueError
redis-sentinel://h  ValueError
redis-cluster://    ValueError
postgresql:x        ValueError
ValueError: unknown option "nope" (allowed: queue, max_payload, capacity, migrate, read_timeout, dead_retention)
ValueError: unknown option "nope" (allowed: queue, %s)
ValueError: option "track" belongs to push, not to the connection
ValueError: unknown option "READ_TIMOUT", did you mean "read_timeout"?
ValueError: queue must be %s, got 1 byte ","
