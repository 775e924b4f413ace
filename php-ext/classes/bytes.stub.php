<?php

/** @generate-class-entries */

namespace JobQueue;

/**
 * A string that travels as bytes, whatever it holds.
 *
 * @strict-properties
 */
final class Bytes implements \Stringable
{
    public readonly string $value;

    public function __construct(string $value) {}

    public function __toString(): string {}
}
