// Taken for modernc.org/sqlite where Litestream is built by ../build.sh.
module modernc.org/sqlite

go 1.21

require github.com/mattn/go-sqlite3 v1.14.19
