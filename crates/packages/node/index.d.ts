/** What the three hosts have in common: `Database` of better-sqlite3, `DatabaseSync` of node:sqlite, `Database` of bun:sqlite. */
export interface Connection {
  exec(sql: string): unknown;
  prepare(sql: string): { get(...values: any[]): any };
  close(): unknown;
}

/** One of those classes. */
export type DatabaseClass<Db extends Connection = Connection> = new (file: any, options?: any) => Db;

/** The version of this package, and of the library in it. */
export const version: string;

/** The path of `libdash.so` for this platform. Throws where there is none, and says what to do. */
export function loadablePath(): string;

/**
 * Loads dash and makes it the default VFS of that class's SQLite, for every database that is opened afterwards. Where
 * the class is built for `synchronous=NORMAL` (better-sqlite3), a warning says so, unless `warn` is false: pass each
 * connection to {@link durable}.
 */
export function register(Database: DatabaseClass, options?: { warn?: boolean }): void;

/**
 * Sets WAL mode, `synchronous=FULL` and the busy timeout (30,000 ms) on a connection that is open, and answers it.
 * Throws where the connection isn't on dash, or its commits would not be durable.
 */
export function durable<Db extends Connection>(db: Db, options?: { timeout?: number }): Db;

/**
 * Opens a file through dash, durably: see {@link durable}. `options` are the class's own; a `timeout` among them is
 * kept. With better-sqlite3, which opens no URIs, dash becomes the default VFS. `":memory:"` is opened without dash.
 */
export function open<Db extends Connection>(Database: DatabaseClass<Db>, file: string, options?: any): Db;
