// dash's mode wal from Node, with better-sqlite3, which is built so that WAL mode means
// synchronous=NORMAL: whoever wants every commit to survive a power loss says FULL.
//
// $ DASH_LIBRARY=./libdash.so node wal.js app.db
// journal mode: wal
// durability: full
// notes: 2
const path = require("node:path");
const Database = require("better-sqlite3");

// It opens no URIs: the entry makes dash the default VFS of what is opened from here on.
const library = path.resolve(process.env.DASH_LIBRARY || "libdash.so");
const scratch = new Database(":memory:");
scratch.loadExtension(library, "sqlite3_dashdefault_init");
scratch.close();

const db = new Database(process.argv[2] || "app.db");
db.pragma("journal_mode = WAL"); // the database keeps it
db.pragma("synchronous = FULL"); // without this line: NORMAL
console.log("journal mode:", db.pragma("journal_mode", { simple: true }));
const durability = "SELECT value FROM dash_stats WHERE name = 'durability'";
console.log("durability:", db.prepare(durability).pluck().get());
db.exec("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, body TEXT)");
const insert = db.prepare("INSERT INTO notes (body) VALUES (?)");
insert.run("durable");
insert.run("when it returns");
console.log("notes:", db.prepare("SELECT count(*) FROM notes").pluck().get());
db.close();
