<?php

return ['default' => 'file', 'stores' => ['file' => ['driver' => 'file', 'path' => getenv('APP_FOLDER') . '/storage/cache']]];
