//! The gem: on the gem sqlite3, below ActiveRecord, and in Rails, where it is all that is needed.

use std::fs;
use std::process::Command;

use crate::common::programs::{killed, stock};
use crate::common::{Made, done, make};
use dash_testing::machine::{has_sqlite3, runs};
use dash_testing::{Need, skip};

/// Tells what a connection got, by a block that asks it.
const TELLS: &str = "$stdout.sync = true
def tell
  durability = yield(\"SELECT value FROM dash_stats WHERE name = 'durability'\")
  puts \"#{yield('SELECT dash_engine()')} #{durability}\"
  Process.kill(:KILL, Process.pid) if ARGV[0]
end
";

const OPENS: &str = "require 'sqlite-dash'
db = SqliteDash.open('app ?#%.db')
db.execute('CREATE TABLE IF NOT EXISTS t(x)')
db.execute('INSERT INTO t VALUES (7)')
tell { |sql| db.get_first_value(sql) }
db.close
";

const RAILS: &str = "require 'rails'
require 'active_record/railtie'
require 'sqlite-dash'
class App < Rails::Application
  config.root = __dir__
  config.eager_load = false
  config.secret_key_base = 'x'
  config.logger = Logger.new(File::NULL)
end
App.initialize!
class Note < ActiveRecord::Base; end
db = Note.connection
db.create_table(:notes, if_not_exists: true) { |table| table.text :body }
Note.create!(body: 'x')
tell { |sql| db.select_value(sql) }
";

const CONFIGURATION: &str = "production:\n  adapter: sqlite3\n  database: rails.db\n";

/// The gem in an empty folder for gems, and the programs.
fn installed() -> Option<Made> {
    if !runs("ruby", &["-r", "sqlite3", "-r", "active_record", "-r", "rails", "-e", "1"]) {
        skip(Need::Ruby, "ruby with sqlite3, active_record and rails is not installed");
        return None;
    }
    if !has_sqlite3() {
        return None;
    }
    let made = make("ruby")?;
    let folder = made.folder.path();
    let mut gem = Command::new("gem");
    let options = ["--local", "--ignore-dependencies", "--no-document", "--silent"];
    gem.arg("install").args(options).arg("--install-dir").arg(folder.join("gems"));
    done(gem.arg(&made.files[0]));
    fs::create_dir(folder.join("config")).expect("a folder");
    fs::write(folder.join("config/database.yml"), CONFIGURATION).expect("a file");
    for (name, program) in [("opens.rb", OPENS), ("rails.rb", RAILS)] {
        fs::write(folder.join(name), format!("{TELLS}{program}")).expect("a file");
    }
    Some(made)
}

fn ruby(made: &Made, arguments: &[&str]) -> Command {
    let folder = made.folder.path();
    let others = done(Command::new("ruby").args(["-e", "print Gem.path.join(':')"]));
    let mut ruby = Command::new("ruby");
    ruby.env("GEM_PATH", format!("{}:{others}", folder.join("gems").display()));
    ruby.env("RAILS_ENV", "production").arg("-W0").args(arguments).current_dir(folder);
    ruby
}

#[test]
fn a_database_is_opened_durably() {
    let Some(made) = installed() else { return };
    assert_eq!(killed(&mut ruby(&made, &["opens.rb", "dies"])), "wal full\n");
    assert_eq!(done(&mut ruby(&made, &["opens.rb"])), "wal full\n");
    assert_eq!(stock(made.folder.path(), "app ?#%.db", "SELECT count(*) FROM t"), "2\n");
    let no_file = "p SqliteDash.open(':memory:').get_first_value('SELECT dash_engine()')";
    assert_eq!(done(&mut ruby(&made, &["-r", "sqlite-dash", "-e", no_file])), "\"none\"\n");
    assert!(!made.folder.path().join(":memory:").exists());
}

#[test]
fn what_goes_wrong_is_told() {
    let Some(made) = installed() else { return };
    let script = "require 'sqlite-dash'
def told
  yield
  puts 'nothing'
rescue StandardError => error
  puts \"#{error.class} #{error.message}\"
end
told { SqliteDash.open('nowhere/a.db') }
require 'fileutils'
own = SqliteDash.loadable_path
FileUtils.cp(own, 'libdash.so')
SqliteDash.define_singleton_method(:loadable_path) { File.expand_path('libdash.so') }
# A copy of the same version, of whatever path.
told { SqliteDash.open('a.db').close }
SqliteDash.send(:remove_const, :VERSION)
SqliteDash::VERSION = '9.9.9'
told { SqliteDash.load }
";
    let said = done(&mut ruby(&made, &["-e", script]));
    let lines: Vec<_> = said.lines().collect();
    assert_eq!(lines.len(), 3, "{said}");
    assert!(lines[0].starts_with("SQLite3::CantOpenException unable to open"), "{said}");
    assert!(lines[0].contains("/nowhere: No such file"), "{said}");
    assert_eq!(lines[1], "nothing");
    assert!(lines[2].contains("already, and this is sqlite-dash 9.9.9"), "{said}");
    let broken = "require 'sqlite-dash'
File.write('libdash.so', 'x')
SqliteDash.define_singleton_method(:loadable_path) { File.expand_path('libdash.so') }
begin SqliteDash.load; rescue SQLite3::Exception => error; puts error.message; end";
    let said = done(&mut ruby(&made, &["-e", broken]));
    assert!(said.contains("file too short"), "{said}");
}

#[test]
fn rails_needs_the_gem_alone() {
    let Some(made) = installed() else { return };
    assert_eq!(killed(&mut ruby(&made, &["rails.rb", "dies"])), "wal full\n");
    assert_eq!(done(&mut ruby(&made, &["rails.rb"])), "wal full\n");
    assert_eq!(stock(made.folder.path(), "rails.db", "SELECT count(*) FROM notes"), "2\n");
}
