//! `sqlite-dash bench worker`, which this program starts of itself: one connection that works off
//! orders from its standard input, or so many steps, to be counted by strace.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::time::Duration;

use super::{Order, work};
use crate::extension::Extension;
use crate::failure::{Explain, Failure, Result};
use crate::interleave::Timed;
use crate::options::Choice;
use crate::row::Row;
use crate::workload::Worker;

/// Arguments of the hidden command.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    choice: Choice,
    #[arg(long, value_parser = crate::rows::parser())]
    row: &'static Row,
    #[arg(long, default_value_t = 0)]
    index: usize,
    #[arg(long, default_value_t = 1)]
    of: usize,
    /// So many steps, and no orders
    #[arg(long)]
    count: Option<usize>,
    path: PathBuf,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<()> {
    let _extension = Extension::load()?;
    let workload = arguments.choice.settings()?.workload()?;
    let (row, path) = (arguments.row, &*arguments.path);
    let db = workload.stays_open().then(|| row.open(path)).transpose()?;
    let worker = Worker { row, path, db: db.as_ref(), index: arguments.index, of: arguments.of };
    let mut session = workload.session(&worker)?;
    if let Some(count) = arguments.count {
        return work(&mut *session, Order::Steps(count)).map(drop);
    }
    answer(&Timed::default())?;
    for line in std::io::stdin().lock().lines() {
        answer(&work(&mut *session, parse(&line.explain("reading an order")?)?)?)?;
    }
    Ok(())
}

fn parse(line: &str) -> Result<Order> {
    let order = line.split_once(' ').and_then(|(word, number)| {
        Some(match word {
            "steps" => Order::Steps(number.parse().ok()?),
            "micros" => Order::Time(Duration::from_micros(number.parse().ok()?)),
            _ => return None,
        })
    });
    order.ok_or_else(|| Failure::new(format!("no such order: {line}")))
}

fn answer(timed: &Timed) -> Result<()> {
    let mut bytes = Vec::new();
    let mut push = |number: u64| bytes.extend(number.to_le_bytes());
    push(timed.elapsed);
    push(timed.failures);
    for times in [&timed.writes, &timed.reads] {
        push(crate::numbers::count(times.len()));
        times.iter().copied().for_each(&mut push);
    }
    let mut out = std::io::stdout().lock();
    out.write_all(&bytes).and_then(|()| out.flush()).explain("answering")
}
