<?php

/** @generate-class-entries */

namespace JobQueue;

/**
 * An integer as text, for those above PHP_INT_MAX.
 *
 * @strict-properties
 */
final class BigInt implements \Stringable
{
    public readonly string $value;

    public function __construct(int|string $value) {}

    public function __toString(): string {}
}
