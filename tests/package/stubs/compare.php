<?php
/* SPDX-License-Identifier: MIT
 *
 * compare.php STUB: exits 1 when a class, method, property or parameter of the loaded extension is not in the stub, or the other
 * way round. The stub's classes are read under another namespace, so that both are there.
 */
$code = preg_replace('/^namespace JobQueue;/m', 'namespace JobQueueStub;', file_get_contents($argv[1]), 1);
$code = preg_replace_callback('/^(    (?:[a-z]+ )*function .*\)(?:: (?!void|static)[^ ]+)?) \{\}$/m', fn ($m) => "$m[1] { throw new \\Error; }", $code);
eval(substr($code, strlen('<?php')));

/** @return list<string> what a class has, a line each */
function parts(ReflectionClass $class): array
{
    $parts = [];
    foreach ($class->getProperties() as $property) {
        if ($property->getDeclaringClass()->getName() === $class->getName())
            $parts[] = "property {$property->name}: {$property->getType()}";
    }
    foreach ($class->getMethods() as $method) {
        if ($method->getDeclaringClass()->getName() !== $class->getName())
            continue;
        $parameters = array_map(fn ($p) => "$p->name: {$p->getType()}" . ($p->isOptional() ? '?' : ''), array_filter($method->getParameters(), fn ($p) => !$p->isVariadic() || $p->name !== 'options'));
        $parts[] = "method $method->name(" . implode(', ', $parameters) . "): {$method->getReturnType()}";
    }
    return str_replace(['iterable', 'JobQueueStub\\'], ['Traversable|array', 'JobQueue\\'], $parts);
}

$wrong = 0;
$mine = array_filter(get_declared_classes(), fn ($name) => str_starts_with($name, 'JobQueueStub\\'));
foreach ((new ReflectionExtension('jobqueue'))->getClasses() as $name => $class) {
    $stub = str_replace('JobQueue\\', 'JobQueueStub\\', $name);
    if (!class_exists($stub) && !interface_exists($stub)) {
        echo "$name is not in the stub\n";
        $wrong++;
        continue;
    }
    $mine = array_diff($mine, [$stub]);
    $said = parts(new ReflectionClass($stub));
    foreach (parts($class) as $part) {
        /* An option is a parameter of the stub alone: what both have comes first. */
        $found = preg_grep('/^' . preg_quote(preg_replace('/\): [^)]*$/', '', $part), '/') . '[,)]?/', $said);
        if (!$found) {
            echo "$name: the extension has\n    $part\nand the stub\n    ", implode("\n    ", preg_grep('/^' . preg_quote(strtok($part, ':('), '/') . '\b/', $said)), "\n";
            $wrong++;
        }
    }
}
foreach ($mine as $name) {
    echo "$name is in the stub alone\n";
    $wrong++;
}
exit($wrong > 0 ? 1 : 0);
