<?php
// A Laravel application as small as it gets.

use Illuminate\Foundation\Application;
use Illuminate\Foundation\Configuration\Exceptions;
use Illuminate\Foundation\Configuration\Middleware;

return Application::configure(basePath: getenv('APP_FOLDER'))
    ->withProviders([JobQueue\Laravel\ServiceProvider::class])
    ->withMiddleware(static function (Middleware $middleware): void {})
    ->withExceptions(static function (Exceptions $exceptions): void {})
    ->create();
