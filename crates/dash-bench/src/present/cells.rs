//! The columns of a table, as text.

use crate::table::{Line, Source, Table};

/// Heading and cells of a table.
pub struct Cells {
    /// Names of columns.
    pub heading: Vec<String>,
    /// Rows.
    pub rows: Vec<Vec<String>>,
}

/// Which columns a table has beside those that all have.
struct Columns {
    writes: bool,
    beside: bool,
    cpu: bool,
    cost: bool,
    journal: bool,
    calls: bool,
    slowest: bool,
    failures: bool,
}

/// Of a table.
pub fn of(table: &Table) -> Cells {
    let any = |has: fn(&Line) -> bool| table.lines.iter().any(has);
    let columns = Columns {
        writes: table.writes,
        beside: any(|line| line.reads.is_some()),
        cpu: any(|line| line.cpu_us.is_some()),
        cost: table.source != Source::Nothing,
        journal: any(|line| line.cost.is_some_and(|cost| cost.journal_kib.is_some())),
        calls: any(|line| line.calls.is_some()),
        slowest: table.writes && any(|line| line.slowest.is_some()),
        failures: any(|line| line.failures > 0),
    };
    let rows = table.lines.iter().map(|line| row(line, &columns)).collect();
    Cells { heading: heading(table, &columns), rows }
}

fn heading(table: &Table, columns: &Columns) -> Vec<String> {
    let mut heading = vec!["row".to_owned()];
    if columns.writes {
        heading.push("power loss".into());
    }
    heading.push(if table.writes { "commits/s" } else { "reads/s" }.into());
    heading.push(format!("x {}", table.baseline));
    heading.extend(["p50 us", "p90", "p99", "p99.9", "max"].map(String::from));
    if columns.cpu {
        heading.push("cpu us".into());
    }
    if columns.cost {
        heading.extend(["flushes", "writes", "KiB", "later KiB"].map(String::from));
    }
    if columns.journal {
        heading.push("journal KiB".into());
    }
    if columns.beside {
        heading.extend(["reads/s", "read p50 us", "read p99"].map(String::from));
    }
    if columns.calls {
        heading.push("calls".into());
    }
    if columns.slowest {
        heading.push("slowest/fastest".into());
    }
    if columns.failures {
        heading.push("failed".into());
    }
    heading
}

fn row(line: &Line, columns: &Columns) -> Vec<String> {
    let mut row = vec![line.name.clone()];
    if columns.writes {
        row.push(line.after_power_loss.to_owned());
    }
    row.push(whole(line.rate.median));
    row.push(speed(line));
    let latency = &line.latency;
    row.extend([latency.p50, latency.p90, latency.p99, latency.p999, latency.max].map(micros));
    if columns.cpu {
        row.push(line.cpu_us.map_or("-".into(), micros));
    }
    if columns.cost {
        row.extend(cost(line));
    }
    if columns.journal {
        let kib = line.cost.and_then(|cost| cost.journal_kib);
        row.push(kib.map_or("-".into(), |kib| format!("{kib:.1}")));
    }
    if columns.beside {
        row.extend(match &line.reads {
            Some((rate, reads)) => [whole(*rate), micros(reads.p50), micros(reads.p99)],
            None => ["-", "-", "-"].map(String::from),
        });
    }
    if columns.calls {
        let calls = line.calls.as_ref();
        row.push(calls.map_or("-".into(), |calls| format!("{:.1}", calls.total)));
    }
    if columns.slowest {
        row.push(line.slowest.map_or("-".into(), |share| format!("{share:.2}")));
    }
    if columns.failures {
        row.push(line.failures.to_string());
    }
    row
}

fn speed(line: &Line) -> String {
    let speed = line.speed;
    match () {
        _ if speed.median <= 0.0 => "-".into(),
        _ if speed.high - speed.low < 0.005 => format!("{:.2}", speed.median),
        _ => format!("{:.2} ({:.2}-{:.2})", speed.median, speed.low, speed.high),
    }
}

fn cost(line: &Line) -> [String; 4] {
    line.cost.map_or(["-", "-", "-", "-"].map(String::from), |cost| {
        [
            format!("{:.2}", cost.flushes),
            cost.writes.map_or("-".into(), |writes| format!("{writes:.2}")),
            format!("{:.1}", cost.kib),
            format!("{:.1}", cost.later_kib),
        ]
    })
}

/// With a comma at each thousand.
pub fn whole(figure: f64) -> String {
    let digits = format!("{figure:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Microseconds, with a digit after the point where they are few.
pub fn micros(figure: f64) -> String {
    if figure < 10.0 { format!("{figure:.1}") } else { whole(figure) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_told_apart() {
        assert_eq!(whole(1_234_567.2), "1,234,567");
        assert_eq!(whole(999.0), "999");
        assert_eq!(whole(0.0), "0");
        assert_eq!(micros(1.25), "1.2");
        assert_eq!(micros(1250.0), "1,250");
    }
}
