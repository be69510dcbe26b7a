// dash's mode wal from Go, with mattn/go-sqlite3 and the pool of database/sql. That driver is built
// so that WAL mode means synchronous=NORMAL: whoever wants every commit to survive a power loss
// says FULL.
//
// $ DASH_LIBRARY=./libdash.so go run . app.db
// journal mode: wal
// durability: full
// notes: 2
package main

import (
	"cmp"
	"database/sql"
	"fmt"
	"log"
	"net/url"
	"os"
	"path/filepath"

	"github.com/mattn/go-sqlite3"
)

const settings = "?vfs=dash&_journal_mode=WAL&_synchronous=FULL&_busy_timeout=30000&_txlock=immediate"

// load loads dash for the whole process: a VFS can't be loaded on the connection it serves.
func load(library string) error {
	sql.Register("sqlite3-dash", &sqlite3.SQLiteDriver{Extensions: []string{library}})
	scratch, err := sql.Open("sqlite3-dash", ":memory:")
	if err != nil {
		return err
	}
	defer scratch.Close()
	return scratch.Ping()
}

func run(path string) error {
	library, err := filepath.Abs(cmp.Or(os.Getenv("DASH_LIBRARY"), "libdash.so"))
	if err != nil {
		return err
	}
	if err := load(library); err != nil {
		return err
	}
	db, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath()+settings)
	if err != nil {
		return err
	}
	defer db.Close()
	var mode, durability string
	if err := db.QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	stats := "SELECT value FROM dash_stats WHERE name = 'durability'"
	if err := db.QueryRow(stats).Scan(&durability); err != nil {
		return err
	}
	fmt.Println("journal mode:", mode)
	fmt.Println("durability:", durability)
	table := "CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, body TEXT)"
	if _, err := db.Exec(table); err != nil {
		return err
	}
	for _, body := range []string{"durable", "when it returns"} {
		if _, err := db.Exec("INSERT INTO notes (body) VALUES (?)", body); err != nil {
			return err
		}
	}
	var notes int
	if err := db.QueryRow("SELECT count(*) FROM notes").Scan(&notes); err != nil {
		return err
	}
	fmt.Println("notes:", notes)
	return nil
}

func main() {
	path := "app.db"
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	if err := run(path); err != nil {
		log.Fatal(err)
	}
}
