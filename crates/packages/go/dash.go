//go:build linux && cgo && (amd64 || arm64)

// Package sqlitedash is the driver "sqlite3-dash" for database/sql: mattn/go-sqlite3, which opens
// its files through dash. The data source name stays as it is.
//
//	import _ "sqlite-dash"
//
//	db, err := sql.Open("sqlite3-dash", "app.db")
//
// Where the name says nothing else, a connection is in WAL mode, each commit is durable
// (_synchronous=FULL, and not the NORMAL that mattn is built for) and a lock is waited for for 30
// seconds, or until the context ends. Opening fails where a file is not in dash's mode wal though
// WAL mode was asked for, by the name or by default: another journal mode in it is not checked.
//
// dash is linked in. Where the C library is musl, as in Alpine, build with -tags musl. A return from
// main closes no database: call Close.
package sqlitedash

/*
#cgo linux,amd64,!musl LDFLAGS: ${SRCDIR}/libdash_amd64_gnu.a
#cgo linux,arm64,!musl LDFLAGS: ${SRCDIR}/libdash_arm64_gnu.a
#cgo linux,amd64,musl LDFLAGS: ${SRCDIR}/libdash_amd64_musl.a
#cgo linux,arm64,musl LDFLAGS: ${SRCDIR}/libdash_arm64_musl.a
#cgo LDFLAGS: -lgcc_eh -lm -ldl -lpthread
#include "dash.h"
*/
import "C"

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"net/url"
	"runtime"
	"strings"
	"sync"

	"github.com/mattn/go-sqlite3"
)

func init() {
	sql.Register("sqlite3-dash", &Driver{})
}

// Driver is mattn's driver on dash. A program that needs a ConnectHook registers a Driver of its
// own under another name. What it opens are mattn's own connections.
type Driver struct {
	sqlite3.SQLiteDriver
}

// Open opens a connection, see the package's documentation.
func (d *Driver) Open(name string) (driver.Conn, error) {
	if err := Load(); err != nil {
		return nil, err
	}
	name, wal, err := throughDash(name)
	if err != nil {
		return nil, err
	}
	// What dash has to say of an error is asked for in the thread that met it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	conn, err := d.SQLiteDriver.Open(name)
	if err != nil {
		return nil, explained(err)
	}
	if wal {
		err = isWal(conn)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

var load = sync.OnceValue(func() error {
	if code := C.dash_begin(); code != 0 {
		return fmt.Errorf("sqlite-dash: SQLite takes no automatic extension (code %d)", int(code))
	}
	scratch, err := (&sqlite3.SQLiteDriver{}).Open(":memory:")
	C.dash_end()
	if err != nil {
		return fmt.Errorf("sqlite-dash: loading dash: %w", err)
	}
	return scratch.Close()
})

// Load brings dash into the program's SQLite, once: Open does it by itself. After it mattn's own
// driver "sqlite3" opens "file:app.db?vfs=dash", too; what it sets is then up to the program.
func Load() error { return load() }

// throughDash gives the data source name with what it leaves out, and whether that comes to WAL
// mode. A database in memory stays as it is.
func throughDash(name string) (string, bool, error) {
	path, query, asks := strings.Cut(name, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", false, fmt.Errorf("sqlite-dash: %w", err)
	}
	file := strings.TrimPrefix(path, "file:")
	if file == "" || file == ":memory:" || values.Get("mode") == "memory" {
		return name, false, nil
	}
	var added []string
	add := func(setting string, names ...string) {
		for _, known := range names {
			if values.Get(known) != "" {
				return
			}
		}
		added = append(added, names[0]+"="+setting)
	}
	add("dash", "vfs")
	add("FULL", "_synchronous", "_sync")
	add("30000", "_busy_timeout", "_timeout")
	reads := values.Get("mode") == "ro" || values.Has("immutable")
	if !reads {
		add("WAL", "_journal_mode", "_journal")
	}
	mode := values.Get("_journal_mode") + values.Get("_journal")
	wal := !reads && (mode == "" || strings.EqualFold(mode, "wal")) &&
		(values.Get("vfs") == "" || values.Get("vfs") == "dash")
	if asks && query != "" {
		added = append([]string{query}, added...)
	}
	return path + "?" + strings.Join(added, "&"), wal, nil
}

// isWal fails where dash went on otherwise than it was asked.
func isWal(conn driver.Conn) error {
	engine, err := first(conn, "SELECT dash_engine()")
	if err != nil {
		return err
	}
	if engine != "wal" {
		why, _ := first(conn, "SELECT coalesce(dash_last_error(), '')")
		return fmt.Errorf("sqlite-dash: the file is in the engine %s, not in wal: %s", engine, why)
	}
	return nil
}

// explained adds what dash knows of a failed opening.
func explained(err error) error {
	scratch, failed := (&sqlite3.SQLiteDriver{}).Open(":memory:")
	if failed != nil {
		return err
	}
	defer scratch.Close()
	if why, _ := first(scratch, "SELECT coalesce(dash_last_error(), '')"); why != "" && !strings.Contains(err.Error(), why) {
		return fmt.Errorf("%w: %s", err, why)
	}
	return err
}

// first is a statement's only value, as text.
func first(conn driver.Conn, statement string) (string, error) {
	rows, err := conn.(*sqlite3.SQLiteConn).Query(statement, nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	values := make([]driver.Value, 1)
	if err := rows.Next(values); err != nil {
		return "", err
	}
	return fmt.Sprint(values[0]), nil
}
