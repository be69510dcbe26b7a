package sqlitedash;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.DriverPropertyInfo;
import java.sql.SQLException;
import java.util.Properties;
import java.util.logging.Logger;

/**
 * {@code jdbc:sqlite-dash:app.db} is {@code jdbc:sqlite:app.db} of sqlite-jdbc, opened through dash. Where neither the
 * URL nor the properties say otherwise, a connection is in WAL mode, its commits are durable ({@code synchronous=FULL})
 * and it waits for a lock for 30 seconds. Connecting fails where a file is not in dash's mode wal though WAL mode was
 * asked for. A database in memory is sqlite-jdbc's.
 */
public final class Driver implements java.sql.Driver {
    private static final String PREFIX = "jdbc:sqlite-dash:";
    private static final String[][] DEFAULTS = {
        {"journal_mode", "WAL"}, {"synchronous", "FULL"}, {"busy_timeout", "30000"},
    };
    private static final int READONLY = 1; // SQLITE_OPEN_READONLY in the property open_mode

    static {
        try {
            DriverManager.registerDriver(new Driver());
        } catch (SQLException error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    @Override
    public boolean acceptsURL(String url) {
        return url != null && url.startsWith(PREFIX);
    }

    @Override
    public Connection connect(String url, Properties properties) throws SQLException {
        if (!acceptsURL(url)) {
            return null;
        }
        Library.load();
        String file = url.substring(PREFIX.length());
        if (file.isEmpty() || file.startsWith(":memory:") || file.contains("mode=memory")) {
            return DriverManager.getConnection("jdbc:sqlite:" + file, properties);
        }
        int mark = file.indexOf('?');
        String query = mark < 0 ? "" : file.substring(mark + 1);
        String path = mark < 0 ? file : file.substring(0, mark);
        Properties settings = new Properties();
        if (properties != null) {
            settings.putAll(properties);
        }
        boolean reads = ("&" + query).contains("&mode=ro") || ("&" + query).contains("&immutable=")
            || (Integer.decode(settings.getProperty("open_mode", "0")) & READONLY) != 0;
        for (String[] setting : DEFAULTS) {
            boolean said = settings.containsKey(setting[0]) || ("&" + query).contains("&" + setting[0] + "=");
            if (!said && !(reads && setting[0].equals("journal_mode"))) {
                settings.setProperty(setting[0], setting[1]);
            }
        }
        Connection db = open("jdbc:sqlite:" + uri(path) + "?vfs=dash" + (query.isEmpty() ? "" : "&" + query), settings);
        // A file that dash leaves to SQLite answers "wal", too.
        if ("WAL".equalsIgnoreCase(settings.getProperty("journal_mode"))
            || "wal".equals(Library.ask(db, "PRAGMA journal_mode"))) {
            check(db);
        }
        return db;
    }

    /** SQLite's text of a failed opening names neither the file nor who is in the way: dash's is put behind it. */
    private static Connection open(String url, Properties settings) throws SQLException {
        try {
            return DriverManager.getConnection(url, settings);
        } catch (SQLException error) {
            String why;
            try (Connection scratch = DriverManager.getConnection("jdbc:sqlite::memory:")) {
                why = Library.ask(scratch, "SELECT dash_last_error()");
            }
            String text = error.getMessage();
            if (why == null || text.contains(why)) {
                throw error;
            }
            throw new SQLException(text + ": " + why, error.getSQLState(), error.getErrorCode(), error);
        }
    }

    /** A path in a URI; what is a URI stays. */
    private static String uri(String path) {
        return path.startsWith("file:") ? path : "file:" + path.replace("%", "%25").replace("#", "%23");
    }

    private static void check(Connection db) throws SQLException {
        String engine = Library.ask(db, "SELECT dash_engine()");
        if (!"wal".equals(engine)) {
            String why = Library.ask(db, "SELECT dash_last_error()");
            db.close();
            throw new SQLException("sqlite-dash: the file is in the engine " + engine + ", not in wal: " + why);
        }
    }

    @Override
    public DriverPropertyInfo[] getPropertyInfo(String url, Properties properties) throws SQLException {
        return host().getPropertyInfo("jdbc:sqlite:" + url.substring(PREFIX.length()), properties);
    }

    /** sqlite-jdbc's own. */
    private static java.sql.Driver host() throws SQLException {
        return DriverManager.getDriver("jdbc:sqlite:");
    }

    @Override
    public int getMajorVersion() {
        return version(0);
    }

    @Override
    public int getMinorVersion() {
        return version(1);
    }

    /** A number of the version, which the jar's manifest has. */
    private static int version(int part) {
        String version = Driver.class.getPackage().getImplementationVersion();
        return version == null ? 0 : Integer.parseInt(version.split("\\.")[part]);
    }

    @Override
    public boolean jdbcCompliant() {
        return false; // as sqlite-jdbc
    }

    @Override
    public Logger getParentLogger() {
        return Logger.getLogger("sqlitedash");
    }
}
