//go:build !linux || !cgo || !(amd64 || arm64)

// Package sqlitedash has no library for this system, or was built without cgo.
package sqlitedash

import (
	"database/sql"
	"database/sql/driver"
	"errors"
)

func init() {
	sql.Register("sqlite3-dash", missing{})
}

type missing struct{}

func (missing) Open(string) (driver.Conn, error) {
	return nil, errors.New("sqlite-dash: dash needs Linux on amd64 or arm64, and a build with cgo; " +
		"use the driver sqlite3 here")
}
