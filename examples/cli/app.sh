#!/bin/sh
# dash from the sqlite3 command line: load on a scratch database, then open through dash.
#
# $ DASH_LIBRARY=./libdash.so sh app.sh app.db
# wal
# 3
# at rest a plain SQLite file, stock sqlite3 reads it: 3
set -eu

library=${DASH_LIBRARY:-./libdash.so}
database=${1:-app.db}

# `sqlite3 'file:app.db?vfs=dash'` can't work: the VFS is not there before .load.
sqlite3 -cmd ".load $library" -cmd ".open file:$database?vfs=dash" :memory: <<'SQL'
PRAGMA journal_mode=WAL;
CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, body TEXT);
INSERT INTO notes (body) VALUES ('each'), ('commit'), ('durable');
SELECT count(*) FROM notes;
SQL

echo "at rest a plain SQLite file, stock sqlite3 reads it: $(sqlite3 "$database" 'SELECT count(*) FROM notes')"
