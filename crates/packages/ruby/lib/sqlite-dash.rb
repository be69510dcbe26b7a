# dash for Ruby: loading it into the gem sqlite3, opening a database with it. Rails needs no more
# than the gem in its Gemfile (see railtie.rb).

require "sqlite3"
require_relative "sqlite_dash/version"

module SqliteDash
  class Error < StandardError; end

  # libdash.so for this platform.
  def self.loadable_path
    path = File.expand_path("sqlite_dash/libdash.so", __dir__)
    return path if File.exist?(path)

    raise Error, "sqlite-dash has no library for #{RUBY_PLATFORM}: use stock SQLite here, or the " \
                 "gem that was built for it"
  end

  # Loads dash for the process, on a connection of its own: a VFS can't be loaded on the connection
  # it serves. `default` makes it the VFS of each database that is opened afterwards.
  def self.load(default: false)
    entry = default ? "sqlite3_dashdefault_init" : "sqlite3_dash_init"
    scratch = SQLite3::Database.new(":memory:")
    scratch.enable_load_extension(true)
    # The gem's load_extension takes no entry.
    scratch.get_first_value("SELECT load_extension(?, ?)", [loadable_path, entry])
    other = scratch.get_first_value("SELECT dash_version()")
    return if other == VERSION

    raise Error, "dash #{other} is loaded in this process already, and this is sqlite-dash #{VERSION}"
  ensure
    scratch&.close
  end

  # Opens a file through dash, durably; ":memory:" and "", which are none, without dash. The options
  # are SQLite3::Database's.
  def self.open(path, **options)
    load
    return SQLite3::Database.new(path, **options) if [":memory:", ""].include?(path)

    name = File.expand_path(path).gsub(/[%?#]/) { |char| format("%%%02X", char.ord) }
    db = SQLite3::Database.new("file:#{name}?vfs=dash", **options)
    db.busy_timeout = 30_000
    durable { |sql| db.get_first_value(sql) }
    db
  rescue Error
    db&.close
    raise
  end

  # Sets WAL mode and synchronous=FULL on the connection whose SQL the block runs and gives the
  # value. Raises where its commits would not be durable.
  def self.durable
    yield "PRAGMA journal_mode = WAL"
    yield "PRAGMA synchronous = FULL"
    engine = yield "SELECT dash_engine()"
    asked = "SELECT value FROM dash_stats WHERE name = 'durability'"
    durability = engine == "wal" ? yield(asked) : "unknown"
    return if durability == "full"

    why = yield "SELECT dash_last_error()"
    raise Error, "commits of this connection are not durable: engine #{engine}, " \
                 "durability #{durability}#{": #{why}" if why}"
  end
end

require_relative "sqlite_dash/railtie" if defined?(Rails::Railtie)
