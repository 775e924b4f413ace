<?php

/** @generate-class-entries */

namespace JobQueue;

/** Where a job stands. */
enum State: string
{
    case Ready = "ready";
    case Delayed = "delayed";
    case Reserved = "reserved";
    case Done = "done";
    case Dead = "dead";
}
