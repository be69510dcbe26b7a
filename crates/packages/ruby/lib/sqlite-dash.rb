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
    other = one(scratch, "SELECT dash_version()")
    if other && other != VERSION
      raise Error, "dash #{other} is loaded in this process already, and this is sqlite-dash #{VERSION}"
    end
    # A copy of the same version serves as well, unless it is to become the default.
    return if other && !default

    # The gem's load_extension takes no entry. SQLite tells why its last try failed: with .so.
    stem = loadable_path.delete_suffix(".so")
    scratch.get_first_value("SELECT load_extension(?, ?)", [stem, entry])
  ensure
    scratch&.close
  end

  # A value of dash's; nil where dash is not loaded.
  def self.one(db, sql)
    db.get_first_value(sql)
  rescue SQLite3::SQLException # no such function
    nil
  end
  private_class_method :one

  # What dash said last in this thread, such as why a database can't be opened; nil if nothing.
  def self.last_error
    scratch = SQLite3::Database.new(":memory:")
    one(scratch, "SELECT dash_last_error()")
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
  rescue Error, SQLite3::Exception => error
    # Before it closes: that may say something, too.
    why = last_error unless error.is_a?(Error)
    db&.close
    # SQLite's text names neither the file nor who is in the way.
    raise if why.nil? || error.message.include?(why)

    raise error.exception("#{error.message}: #{why}")
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
