// dash from Node, with better-sqlite3. It can't open URIs, so dash is made the default VFS: load
// it before anything else is opened.
//
// $ DASH_LIBRARY=./libdash.so node app.js app.db
// journal mode: shadow
// notes: 2
const path = require("node:path");
const Database = require("better-sqlite3");

const library = path.resolve(process.env.DASH_LIBRARY || "libdash.so");
const scratch = new Database(":memory:");
scratch.loadExtension(library, "sqlite3_dashdefault_init");
scratch.close();

const db = new Database(process.argv[2] || "app.db");
console.log("journal mode:", db.pragma("journal_mode", { simple: true }));
db.exec("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, body TEXT)");
const insert = db.prepare("INSERT INTO notes (body) VALUES (?)");
insert.run("durable");
insert.run("when it returns");
console.log("notes:", db.prepare("SELECT count(*) FROM notes").pluck().get());
db.close();
