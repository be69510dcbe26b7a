/* dash for programs in C and C++ that link SQLite themselves, with libdash.a:
 *
 *     cc app.c sqlite3.c libdash.a -lgcc_eh -lm -ldl -lpthread
 *
 * Call dash_register() once, before any database is opened. From then on
 * sqlite3_open_v2("file:app.db?vfs=dash", &db, SQLITE_OPEN_URI | ..., NULL) opens through dash; say
 * PRAGMA journal_mode=WAL, and PRAGMA synchronous=FULL unless SQLite was built for that.
 *
 * A program that loads libdash.so needs none of this. */
#ifndef DASH_H
#define DASH_H

#include <sqlite3.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sqlite3_api_routines;

/* Entry points, as SQLite calls those of an extension. They register the VFS "dash"; the second one
 * makes it the default, too. They answer SQLITE_OK_LOAD_PERMANENTLY, or an error with its message
 * in *error, which sqlite3_free() frees. The functions of SQLite come by api alone: where that is a
 * null pointer, as in an SQLite built with SQLITE_OMIT_LOAD_EXTENSION, they fail. */
int sqlite3_dash_init(sqlite3 *db, char **error, const struct sqlite3_api_routines *api);
int sqlite3_dashdefault_init(sqlite3 *db, char **error, const struct sqlite3_api_routines *api);

/* An automatic extension must answer SQLITE_OK, or no database can be opened. */
static inline int dash_automatic(sqlite3 *db, char **error, const struct sqlite3_api_routines *api) {
  int code = sqlite3_dash_init(db, error, api);
  return code == SQLITE_OK_LOAD_PERMANENTLY ? SQLITE_OK : code;
}

/* Registers dash for the whole process and answers a code of SQLite. SQLite hands out its functions
 * when a connection is opened, so one is, in memory. */
static inline int dash_register(void) {
  sqlite3 *scratch = 0;
  int code = sqlite3_auto_extension((void (*)(void))dash_automatic);
  if (code == SQLITE_OK) {
    code = sqlite3_open(":memory:", &scratch);
    sqlite3_close(scratch);
    sqlite3_cancel_auto_extension((void (*)(void))dash_automatic);
  }
  return code;
}

#ifdef __cplusplus
}
#endif

#endif
