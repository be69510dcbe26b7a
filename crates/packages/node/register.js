// For a program that stays as it is: node --require sqlite-dash/register app.js
//
// Every file that it opens for writing with better-sqlite3 (below Knex and Drizzle, too), or with
// node:sqlite where it has no better-sqlite3, is opened through dash, in WAL mode and with
// synchronous=FULL. Under Bun the program has to ask for WAL mode itself.
"use strict";

const { createRequire, syncBuiltinESMExports } = require("node:module");
const path = require("node:path");

const { explained } = require("./explained.js");
const dash = require("./index.js");

/** The class, whose every new connection to a file that may be written is made durable. */
function durably(Database) {
  const settle = (connection, { readonly, readOnly, open, timeout } = {}) => {
    if (readonly || readOnly || open === false) return connection;
    const { file } = connection.prepare("SELECT file FROM pragma_database_list WHERE name = 'main'").get();
    return file ? dash.durable(connection, { timeout }) : connection;
  };
  const made = (values, make) => explained(Database, values[0], () => settle(make(), values[1]));
  return new Proxy(Database, {
    construct: (target, values, asked) => made(values, () => Reflect.construct(target, values, asked)),
    apply: (target, _, values) => made(values, () => new target(...values)),
  });
}

/** Where the program's own packages are looked for: beside its file, or in the working folder if it has none. */
function packages() {
  return createRequire(path.resolve(process.argv[1] || "package.json"));
}

/** Replaces the class, so that the program gets the one above; false where there is no package. */
function replaced() {
  const require = packages();
  let name;
  try {
    name = require.resolve("better-sqlite3");
  } catch {
    return false;
  }
  // The package hands out what its inner file exports. It is loaded after that was replaced, as
  // `import` keeps what a file exported when it was loaded.
  const inner = path.join(path.dirname(name), "database.js");
  const Database = require(inner);
  dash.register(Database, { warn: false });
  const durable = durably(Database);
  require.cache[inner].exports = durable;
  if (require(name) !== durable) {
    throw new Error("sqlite-dash/register does not know this version of better-sqlite3: use open() of sqlite-dash");
  }
  return true;
}

if (process.versions.bun) {
  dash.register(require("bun:sqlite").Database);
} else if (!replaced()) {
  let sqlite;
  try {
    sqlite = require("node:sqlite");
  } catch {
    throw new Error("sqlite-dash/register found neither better-sqlite3 nor node:sqlite");
  }
  dash.register(sqlite.DatabaseSync, { warn: false });
  sqlite.DatabaseSync = durably(sqlite.DatabaseSync);
  syncBuiltinESMExports();
}
