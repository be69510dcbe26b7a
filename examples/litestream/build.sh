#!/bin/sh
# Builds Litestream so that it opens databases through dash. The argument is where the program goes.
#
# $ examples/litestream/build.sh litestream-dash
set -eu
program=$(realpath "${1:-litestream-dash}")
driver=$(realpath "$(dirname "$0")/sqlite")
module=github.com/benbjohnson/litestream@v0.5.18
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
found=$(go mod download -json "$module" | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')
cp -r "$found/." "$work"
chmod -R u+w "$work"
cd "$work"
go mod edit -replace "modernc.org/sqlite=$driver"
go build -mod=mod -o "$program" ./cmd/litestream
