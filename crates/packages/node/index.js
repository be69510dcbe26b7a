// sqlite-dash for Node and Bun: where the library lies, loading it, opening a database with it.
//
// It serves the `Database` of better-sqlite3, `DatabaseSync` of node:sqlite and the `Database` of
// bun:sqlite, which each have an SQLite of their own: one is loaded into, the others aren't.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

const { explained } = require("./explained.js");
const { version, optionalDependencies } = require("./package.json");

/** What the names of packages for one platform begin with. */
const PREFIX = "sqlite-dash-";

/** SQLITE_OPEN_READWRITE, _CREATE and _URI: bun:sqlite opens URIs only where it is told to. */
const BUN_FLAGS = 0x02 | 0x04 | 0x40;

/** glibc or musl: the report of a process says which version of glibc it runs on. */
function libc() {
  if (process.platform !== "linux") return "";
  const network = process.report.excludeNetwork;
  process.report.excludeNetwork = true; // it would look up names
  const { header } = process.report.getReport();
  process.report.excludeNetwork = network;
  return header.glibcVersionRuntime ? "-gnu" : "-musl";
}

function platform() {
  return `${process.platform}-${process.arch}${libc()}`;
}

function loadablePath() {
  const name = PREFIX + platform();
  if (!(name in optionalDependencies)) {
    const known = Object.keys(optionalDependencies).map((name) => name.slice(PREFIX.length));
    throw new Error(
      `sqlite-dash has no library for ${platform()}, only for ${known.join(", ")}: ` +
        "use stock SQLite here, or build the library from source and load it with loadExtension()",
    );
  }
  let manifest;
  try {
    manifest = require.resolve(`${name}/package.json`);
  } catch {
    throw new Error(
      `the package ${name} is not installed: npm leaves it out with --omit=optional, or where ` +
        `node_modules came from another platform; run npm install ${name}@${version}`,
    );
  }
  const library = path.join(path.dirname(manifest), "libdash.so");
  // SQLite would say no more than "cannot open shared object file".
  fs.accessSync(library, fs.constants.R_OK);
  return library;
}

/** SQLite tries a path as it is, then with `.so` behind it, and tells why the last try failed. */
function stem(library) {
  return library.replace(/\.so$/, "");
}

/** How a class opens databases, told by its methods. */
function hostOf(Database) {
  const methods = Database?.prototype ?? {};
  if (typeof methods.pragma === "function" && typeof methods.loadExtension === "function") {
    return {
      name: "better-sqlite3",
      scratch: () => new Database(":memory:"),
      // It opens no URIs. So dash has to be the default VFS, and the path stays as it is.
      open: (file, options) => new Database(file, options),
      byDefault: true,
    };
  }
  if (typeof methods.enableLoadExtension === "function") {
    return {
      name: "node:sqlite",
      scratch: () => new Database(":memory:", { allowExtension: true }),
      open: (file, options = {}) => new Database(uri(file), options),
    };
  }
  if (typeof methods.query === "function" && typeof methods.loadExtension === "function") {
    return {
      name: "bun:sqlite",
      scratch: () => new Database(":memory:"),
      open: (file, options = BUN_FLAGS) => new Database(uri(file), options),
    };
  }
  throw new TypeError(
    "sqlite-dash: give it Database of better-sqlite3, DatabaseSync of node:sqlite or Database of bun:sqlite",
  );
}

function uri(file) {
  const url = pathToFileURL(path.resolve(file));
  url.searchParams.set("vfs", "dash");
  return url.href;
}

/** The classes whose SQLite has dash, and those of them where it is the default VFS. */
const loaded = new WeakSet();
const byDefault = new WeakSet();

function first(db, sql) {
  return Object.values(db.prepare(sql).get() ?? {})[0];
}

/** Loads dash on a connection of its own: a VFS can't be loaded on the connection it serves. */
function load(Database, host, asDefault) {
  if (asDefault ? byDefault.has(Database) : loaded.has(Database)) return;
  const scratch = host.scratch();
  try {
    const other = versionIn(scratch);
    if (other && other !== version) {
      throw new Error(`dash ${other} is loaded in this process already, and this is sqlite-dash ${version}`);
    }
    const entry = asDefault ? "sqlite3_dashdefault_init" : "sqlite3_dash_init";
    // A copy of the same version serves as well, unless it is to become the default.
    if (!other || asDefault) scratch.loadExtension(stem(loadablePath()), entry);
  } finally {
    scratch.close();
  }
  loaded.add(Database);
  if (asDefault) byDefault.add(Database);
}

/** The dash that is loaded already, perhaps by other hands. */
function versionIn(scratch) {
  try {
    return first(scratch, "SELECT dash_version()");
  } catch {
    return undefined; // no such function
  }
}

function register(Database, { warn = true } = {}) {
  const host = hostOf(Database);
  load(Database, host, true);
  const scratch = host.scratch();
  const options = scratch.prepare("SELECT 1 FROM pragma_compile_options WHERE compile_options = ?");
  const normal = options.get("DEFAULT_WAL_SYNCHRONOUS=1");
  scratch.close();
  if (normal && warn) {
    process.emitWarning(
      `${host.name} is built so that WAL mode means synchronous=NORMAL: a power loss may take the last commits. ` +
        "Pass each connection to durable() of sqlite-dash, or open it with open()",
      { type: "SqliteDashWarning", code: "SQLITE_DASH_NORMAL" },
    );
  }
}

function durable(db, { timeout = 30000 } = {}) {
  db.exec(`PRAGMA busy_timeout = ${Number(timeout)}`);
  db.exec("PRAGMA journal_mode = WAL");
  db.exec("PRAGMA synchronous = FULL");
  const engine = engineOf(db);
  if (engine === "none") {
    throw new Error("this connection is not on dash: it is in memory, or was opened before dash was loaded");
  }
  const asked = "SELECT value FROM dash_stats WHERE name = 'durability'";
  const durability = engine === "wal" ? first(db, asked) : undefined;
  if (durability !== "full") {
    const why = first(db, "SELECT dash_last_error()");
    throw new Error(
      `commits of this connection are not durable: engine ${engine}, durability ${durability ?? "unknown"}` +
        (why ? `: ${why}` : ""),
    );
  }
  return db;
}

function engineOf(db) {
  try {
    return first(db, "SELECT dash_engine()");
  } catch {
    return "none"; // no such function
  }
}

function open(Database, file, options) {
  const host = hostOf(Database);
  load(Database, host, Boolean(host.byDefault));
  // No file: SQLite's own.
  if (file === ":memory:" || file === "") return new Database(file, ...(options ? [options] : []));
  return explained(Database, file, () => {
    const db = host.open(file, options);
    try {
      return durable(db, { timeout: options?.timeout });
    } catch (error) {
      db.close();
      throw error;
    }
  });
}

module.exports = { version, loadablePath, register, durable, open };
