# What ActiveRecord's connections say when they are opened.

module SqliteDash
  module Adapter
    private

    # Rails 7.1 and later say NORMAL here: a power loss may take the last commits.
    def configure_connection
      super
      file = query_value("SELECT file FROM pragma_database_list WHERE name = 'main'")
      return if file.to_s.empty? || @config[:readonly]

      SqliteDash.durable { |sql| query_value(sql) }
    end
  end

  # Dash becomes the default VFS: `database:` in the configuration stays a path.
  def self.install(adapter)
    load(default: true)
    adapter.prepend(Adapter)
  end
end
