/* Loads dash, which is linked into the program, into the SQLite that is linked into it. */

#include "dash.h"

typedef struct sqlite3 sqlite3;

extern int sqlite3_auto_extension(void (*entry)(void));
extern int sqlite3_cancel_auto_extension(void (*entry)(void));
extern char *sqlite3_mprintf(const char *format, ...);
extern int sqlite3_dash_init(sqlite3 *db, char **error, const void *api);

#define OK 0
#define ERROR 1
#define OK_LOAD_PERMANENTLY 256

/* An automatic extension must answer OK: SQLite takes any other code for a failed opening. */
static int load(sqlite3 *db, char **error, const void *api) {
  if (!api) {
    *error = sqlite3_mprintf("dash needs SQLite's functions: build without sqlite_omit_load_extension");
    return ERROR;
  }
  int code = sqlite3_dash_init(db, error, api);
  return code == OK_LOAD_PERMANENTLY ? OK : code;
}

int dash_begin(void) { return sqlite3_auto_extension((void (*)(void))load); }

void dash_end(void) { sqlite3_cancel_auto_extension((void (*)(void))load); }
