--TEST--
Job classes with equal values of their unique parameters do not get into each other's way (rule B6)
--EXTENSIONS--
jobqueue
--FILE--
<?php
require __DIR__ . '/../_util/util.inc';
use JobQueue\{AsJob, Queue};

#[AsJob('invoice.send', unique: 'id')] final class SendInvoice { public function __construct(public int $id) {} public function handle() {} }
#[AsJob('customer.welcome', unique: 'id')] final class Welcome { public function __construct(public int $id) {} public function handle() {} }

$queue = new Queue(store());
$invoice = $queue->push(new SendInvoice(17));
$welcome = $queue->push(new Welcome(17));
var_dump($invoice !== $welcome, $queue->push(new SendInvoice(17)) === $invoice, $queue->push(new Welcome(17)) === $welcome);
var_dump($queue->push('other', null, unique: 'invoice.send:17') === $invoice);
echo $queue->stats('default')->ready, "\n";
?>
--EXPECT--
bool(true)
bool(true)
bool(true)
bool(true)
2
