<?php
// dash for PHP: loads it, and opens a PDO connection with it. See README.md.

namespace SqliteDash;

/** Loads dash for the process: on a connection of its own, as a VFS can't be loaded on the one it serves. */
function load(): void
{
    static $loaded = false;
    if ($loaded) {
        return;
    }
    if (PHP_OS_FAMILY !== 'Linux') {
        throw new \RuntimeException('sqlite-dash has a library for Linux only, not for ' . PHP_OS_FAMILY);
    }
    $own = require __DIR__ . '/version.php';
    try {
        $other = (new \PDO('sqlite::memory:'))->query('SELECT dash_version()')->fetchColumn();
    } catch (\PDOException) { // no such function
        $other = null;
    }
    if ($other !== null) {
        $loaded = $other === $own ?: throw new \RuntimeException("dash $other is loaded in this process already, and "
            . "this package has $own: one process can use one of them");
        return;
    }
    if (class_exists('Pdo\Sqlite')) { // PHP 8.4
        $scratch = new \Pdo\Sqlite('sqlite::memory:');
        $scratch->loadExtension(__DIR__ . '/libdash.so');
    } else {
        if (ini_get('sqlite3.extension_dir') === '') {
            throw new \RuntimeException('sqlite-dash: php.ini has to say sqlite3.extension_dir = ' . __DIR__);
        }
        $scratch = new \SQLite3(':memory:');
        $scratch->enableExceptions(true);
        $scratch->loadExtension('libdash.so');
    }
    $loaded = true;
}

/**
 * Opens a file through dash: in WAL mode, each commit durable, a lock waited for for 30 seconds. Throws where a commit
 * would not be durable. What is no file, ":memory:" and "", is opened without dash.
 */
function open(string $path, array $options = []): \PDO
{
    load();
    if ($path === ':memory:' || $path === '') {
        return new \PDO("sqlite:$path", null, null, $options);
    }
    $path = str_starts_with($path, '/') ? $path : getcwd() . '/' . $path;
    $name = str_replace(['%', '?', '#'], ['%25', '%3F', '%23'], $path);
    $options += [\PDO::ATTR_ERRMODE => \PDO::ERRMODE_EXCEPTION, \PDO::ATTR_TIMEOUT => 30];
    try {
        $db = new \PDO("sqlite:file:$name?vfs=dash", null, null, $options);
        $ask = fn (string $sql) => $db->query($sql)->fetchColumn();
        $ask('PRAGMA journal_mode = WAL');
        $db->exec('PRAGMA synchronous = FULL');
    } catch (\PDOException $error) {
        throw explained($error);
    }
    $engine = $ask('SELECT dash_engine()');
    $durability = $engine === 'wal' ? $ask("SELECT value FROM dash_stats WHERE name = 'durability'") : 'unknown';
    if ($durability !== 'full') {
        $why = $ask('SELECT dash_last_error()');
        throw new \RuntimeException("commits are not durable: engine $engine, durability $durability: $why");
    }
    return $db;
}

/** The same with dash's reason behind its text: SQLite's names neither the file nor who is in the way. */
function explained(\PDOException $error): \PDOException
{
    $why = (new \PDO('sqlite::memory:'))->query('SELECT dash_last_error()')->fetchColumn();
    if (!$why || str_contains($error->getMessage(), $why)) {
        return $error;
    }
    $told = new \PDOException("{$error->getMessage()}: $why", (int) $error->getCode(), $error);
    $told->errorInfo = $error->errorInfo;
    return $told;
}
