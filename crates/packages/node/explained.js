// SQLite's text of a failed opening names neither the file nor who is in the way: dash's does.
"use strict";

/** What `act` gives. An error of opening that file gets dash's reason behind its text, or the path where dash has none. */
function explained(Database, file, act) {
  try {
    return act();
  } catch (error) {
    const why = isOfSqlite(error) ? lastError(Database) : undefined;
    const more = why ?? String(file ?? "");
    if (!error.message.includes(more)) error.message += `: ${more}`;
    throw error;
  }
}

/** Of better-sqlite3 and Bun, or of node:sqlite. */
function isOfSqlite({ code }) {
  return String(code).startsWith("SQLITE_") || code === "ERR_SQLITE_ERROR";
}

/** What dash said last in this thread. */
function lastError(Database) {
  const scratch = new Database(":memory:");
  try {
    return scratch.prepare("SELECT dash_last_error() AS why").get().why ?? undefined;
  } finally {
    scratch.close();
  }
}

module.exports = { explained };
