package sqlitedash;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;
import java.util.stream.Stream;

/** The library in this jar, which is loaded into the SQLite of sqlite-jdbc once. */
public final class Library {
    private static boolean loaded;

    private Library() {}

    /**
     * Loads dash for the whole process, on a connection of its own: a VFS can't be loaded on the connection it serves.
     * The driver calls it. After it sqlite-jdbc's own {@code jdbc:sqlite:file:app.db?vfs=dash} opens, too.
     */
    public static synchronized void load() throws SQLException {
        if (loaded) {
            return;
        }
        Properties settings = new Properties();
        settings.setProperty("enable_load_extension", "true");
        try (Connection scratch = DriverManager.getConnection("jdbc:sqlite::memory:", settings)) {
            if (!isThere(scratch)) {
                load(scratch, unpacked());
            }
        }
        loaded = true;
    }

    private static void load(Connection scratch, Path library) throws SQLException {
        try {
            // SQLite tells why its last try failed, which is that with ".so" behind what it was given.
            String stem = library.toString().replaceFirst("\\.so$", "").replace("'", "''");
            ask(scratch, "SELECT load_extension('" + stem + "')");
        } finally {
            // A library that is loaded needs no name.
            delete(library);
        }
    }

    /** Whether this SQLite has dash already, by other hands; not another version of it. */
    private static boolean isThere(Connection scratch) throws SQLException {
        String other;
        try {
            other = ask(scratch, "SELECT dash_version()");
        } catch (SQLException error) {
            return false; // no such function
        }
        String own = Library.class.getPackage().getImplementationVersion();
        if (own != null && !own.equals(other)) {
            throw new SQLException("dash " + other + " is loaded in this process already, and this jar has " + own
                + ": one process can use one of them");
        }
        return true;
    }

    /** {@code libdash.so} of this platform, as a file: only a file can be loaded. */
    private static Path unpacked() throws SQLException {
        String name = platform() + "/libdash.so";
        // The folder that sqlite-jdbc unpacks its own library into.
        String folder = System.getProperty("org.sqlite.tmpdir", System.getProperty("java.io.tmpdir"));
        try (InputStream bytes = Library.class.getResourceAsStream(name)) {
            if (bytes == null) {
                throw new SQLException("sqlite-dash has no library for " + platform()
                    + " in this jar: use stock SQLite here, or a jar that was made for it");
            }
            Path file = Files.createTempFile(Path.of(folder), "libdash", ".so");
            Files.copy(bytes, file, StandardCopyOption.REPLACE_EXISTING);
            return file;
        } catch (IOException error) {
            throw new SQLException("sqlite-dash can't unpack its library into " + folder
                + ", and the property org.sqlite.tmpdir names another folder: " + error, error);
        }
    }

    /** Such as {@code linux-amd64-gnu}. */
    private static String platform() {
        String system = System.getProperty("os.name").toLowerCase() + "-" + System.getProperty("os.arch");
        if (!system.startsWith("linux-")) {
            return system;
        }
        try (Stream<String> mapped = Files.lines(Path.of("/proc/self/maps"))) {
            return system + (mapped.anyMatch(line -> line.contains("ld-musl-")) ? "-musl" : "-gnu");
        } catch (IOException error) {
            return system + "-gnu";
        }
    }

    private static void delete(Path file) {
        try {
            Files.delete(file);
        } catch (IOException error) {
            file.toFile().deleteOnExit();
        }
    }

    /** A statement's only value. */
    static String ask(Connection db, String sql) throws SQLException {
        try (Statement statement = db.createStatement(); ResultSet rows = statement.executeQuery(sql)) {
            return rows.next() ? rows.getString(1) : null;
        }
    }
}
