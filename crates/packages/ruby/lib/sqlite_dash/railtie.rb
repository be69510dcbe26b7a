# With the gem in the Gemfile each connection of Rails to a file goes through dash, durably.

require_relative "adapter"

module SqliteDash
  class Railtie < Rails::Railtie
    initializer "sqlite_dash", before: "active_record.initialize_database" do
      ActiveSupport.on_load(:active_record_sqlite3adapter) { SqliteDash.install(self) }
    end
  end
end
