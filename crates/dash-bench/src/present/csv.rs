//! Tables as CSV: one heading, a line per row of every table; fields with commas are quoted.

use crate::table::Table;

const HEADING: &str = "workload,place,connections,rounds,row,after_power_loss,rate,rate_low,rate_high,baseline,speed,speed_low,speed_high,count,mean_us,p50_us,p90_us,p99_us,p999_us,max_us,cpu_us,flushes,writes,kib,later_kib,journal_kib,read_rate,read_p50_us,read_p99_us,calls,slowest,failures,command";

/// All of them.
pub fn of(tables: &[Table]) -> String {
    let mut text = format!("{HEADING}\n");
    for table in tables {
        for line in &table.lines {
            let optional =
                |figure: Option<f64>| figure.map(|it| it.to_string()).unwrap_or_default();
            let (rate, speed, latency) = (line.rate, line.speed, line.latency);
            let reads = line.reads.as_ref();
            let fields = [
                table.about.clone(),
                table.place.clone(),
                table.connections.to_string(),
                table.rounds.to_string(),
                line.row.clone(),
                line.after_power_loss.to_owned(),
                rate.median.to_string(),
                rate.low.to_string(),
                rate.high.to_string(),
                table.baseline.clone(),
                speed.median.to_string(),
                speed.low.to_string(),
                speed.high.to_string(),
                latency.count.to_string(),
                latency.mean.to_string(),
                latency.p50.to_string(),
                latency.p90.to_string(),
                latency.p99.to_string(),
                latency.p999.to_string(),
                latency.max.to_string(),
                optional(line.cpu_us),
                optional(line.cost.map(|cost| cost.flushes)),
                optional(line.cost.and_then(|cost| cost.writes)),
                optional(line.cost.map(|cost| cost.kib)),
                optional(line.cost.map(|cost| cost.later_kib)),
                optional(line.cost.and_then(|cost| cost.journal_kib)),
                optional(reads.map(|(rate, _)| *rate)),
                optional(reads.map(|(_, latency)| latency.p50)),
                optional(reads.map(|(_, latency)| latency.p99)),
                optional(line.calls.as_ref().map(|calls| calls.total)),
                optional(line.slowest),
                line.failures.to_string(),
                table.command.clone(),
            ];
            text.push_str(&fields.map(|field| quoted(&field)).join(","));
            text.push('\n');
        }
    }
    text
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_with_a_comma_is_quoted() {
        assert_eq!(quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(HEADING.split(',').count(), 33);
    }
}
