/* What the driver needs of SQLite, which mattn/go-sqlite3 links, and of dash. */
int dash_begin(void); /* has the next connection that is opened load dash; SQLite's code */
void dash_end(void);  /* and none after it: dash has seen to those itself */
