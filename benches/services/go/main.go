// A service on net/http and mattn/go-sqlite3, with 8 connections: /insert adds a row of 100 bytes,
// /update/N reads a row and changes it, / tells facts. `dash-lab services` starts it, with a
// database that has both tables already.
//
// $ DASH_LIBRARY=libdash.so service 'file:app.db?vfs=dash&…' SOCKET
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/mattn/go-sqlite3"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// load loads dash for the whole process: on a scratch connection, before anything is opened.
func load(library string) {
	sql.Register("scratch", &sqlite3.SQLiteDriver{Extensions: []string{library}})
	scratch, err := sql.Open("scratch", ":memory:")
	must(err)
	must(scratch.Ping())
	must(scratch.Close())
}

func insert(db *sql.DB) (any, error) {
	_, err := db.Exec("INSERT INTO note(body) VALUES (?)", strings.Repeat("x", 100))
	return "done", err
}

func update(db *sql.DB, key string) (any, error) {
	tx, err := db.Begin()
	if err != nil {
		return nil, err
	}
	defer tx.Rollback()
	var n int
	if err := tx.QueryRow("SELECT n FROM counter WHERE id = ?", key).Scan(&n); err != nil {
		return nil, err
	}
	if _, err := tx.Exec("UPDATE counter SET n = ? WHERE id = ?", n+1, key); err != nil {
		return nil, err
	}
	return n + 1, tx.Commit()
}

func facts(db *sql.DB) (any, error) {
	var version, journal, synchronous string
	err := db.QueryRow("SELECT sqlite_version(), journal_mode, synchronous"+
		" FROM pragma_journal_mode, pragma_synchronous").Scan(&version, &journal, &synchronous)
	return fmt.Sprintf("sqlite_version() %s, journal_mode %s, synchronous %s", version, journal, synchronous), err
}

func main() {
	if library := os.Getenv("DASH_LIBRARY"); library != "" {
		load(library)
	}
	db, err := sql.Open("sqlite3", os.Args[1])
	must(err)
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(8)
	answer := func(w http.ResponseWriter, said any, err error) {
		if err != nil {
			log.Print(err)
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, said)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/insert", func(w http.ResponseWriter, r *http.Request) {
		said, err := insert(db)
		answer(w, said, err)
	})
	mux.HandleFunc("/update/{key}", func(w http.ResponseWriter, r *http.Request) {
		said, err := update(db, r.PathValue("key"))
		answer(w, said, err)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		said, err := facts(db)
		answer(w, said, err)
	})
	socket, err := net.Listen("unix", os.Args[2])
	must(err)
	server := &http.Server{Handler: mux}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGQUIT)
	go func() {
		<-ended
		server.Shutdown(context.Background())
	}()
	server.Serve(socket)
	must(db.Close())
}
