<?php

return ['default' => 'single', 'channels' => ['single' => ['driver' => 'single', 'path' => getenv('APP_FOLDER') . '/storage/laravel.log']]];
