// Package sqlite has what Litestream takes from modernc.org/sqlite, which loads no native
// libraries. It opens databases with mattn/go-sqlite3, and through dash what Litestream replicates.
package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"

	"github.com/mattn/go-sqlite3"
)

// FileControl is modernc.org/sqlite's interface of this name.
type FileControl interface {
	FileControlPersistWAL(schema string, mode int) (int, error)
}

func init() { sql.Register("sqlite", &dash{}) }

type dash struct {
	sqlite3.SQLiteDriver
	lock sync.Mutex
	// Databases whose -wal was emptied since the process began.
	begun map[string]bool
}

type conn struct{ *sqlite3.SQLiteConn }

// FileControlPersistWAL keeps -wal at the last close (1) or not (0).
func (c *conn) FileControlPersistWAL(schema string, mode int) (int, error) {
	return mode, c.SetFileControlInt(schema, sqlite3.SQLITE_FCNTL_PERSIST_WAL, mode)
}

// Open opens a database through dash if name gives PRAGMAs, as Litestream does for what it
// replicates, and otherwise, as for checking what it restored, without.
func (d *dash) Open(name string) (driver.Conn, error) {
	path, query, _ := strings.Cut(name, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, err
	}
	pragmas := values["_pragma"]
	if len(pragmas) == 0 {
		return d.SQLiteDriver.Open(name)
	}
	d.lock.Lock()
	defer d.lock.Unlock()
	if err := d.load(); err != nil {
		return nil, fmt.Errorf("cannot load dash: %w", err)
	}
	opened, err := d.SQLiteDriver.Open(path + "?vfs=dash")
	if err != nil {
		return nil, err
	}
	c := &conn{opened.(*sqlite3.SQLiteConn)}
	for _, pragma := range pragmas {
		if _, err := c.Exec("PRAGMA "+pragma, nil); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	if !d.begun[path] {
		if err := c.emptyWAL(); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		if d.begun == nil {
			d.begun = make(map[string]bool)
		}
		d.begun[path] = true
	}
	return c, nil
}

// load registers the VFS dash. A second time that does nothing.
func (d *dash) load() error {
	opened, err := d.SQLiteDriver.Open(":memory:")
	if err != nil {
		return err
	}
	defer opened.Close()
	library := os.Getenv("DASH_LIBRARY")
	if library == "" {
		library = "./libdash.so"
	}
	return opened.(*sqlite3.SQLiteConn).LoadExtension(library, "sqlite3_dash_init")
}

// emptyWAL has Litestream take a snapshot. While it was away a checkpoint may have taken commits
// out of -wal, which it does not always notice.
func (c *conn) emptyWAL() error {
	rows, err := c.Query("PRAGMA wal_checkpoint(TRUNCATE)", nil)
	if err != nil {
		return err
	}
	defer rows.Close()
	row := make([]driver.Value, 3)
	if err := rows.Next(row); err != nil {
		return err
	}
	if row[0] != int64(0) {
		return errors.New("database is locked: -wal has to be emptied before replication begins")
	}
	return nil
}
