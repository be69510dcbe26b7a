//! DASH: Database Shadowing for Mobile DBMS (VLDB 2019), Figures 13 to 18 and Table 2. Its SHADOW
//! is `dash paper` here, its SHADOW-X is `dash exclusive`; `dash single` is ours alone.

use super::comparison::Comparison;
use super::runner::Runner;
use crate::failure::Result;
use crate::options::Choice;
use crate::recovery;
use crate::row::Row;
use crate::sides::{EXCLUSIVE, PAPER, PERSIST, SINGLE, WAL};
use crate::table::{Line, Table};
use crate::workload::Name;

const MODES: [&Row; 5] = [PERSIST, WAL, PAPER, EXCLUSIVE, SINGLE];
/// Table 2 as it is printed: average, median, 99.9 %, in ms, of PERSIST, WAL, SHADOW, SHADOW-X.
const TABLE_2: [(Name, [[f64; 3]; 4]); 2] = [
    (Name::Insert, [[5.2, 5.1, 10.6], [2.4, 2.3, 10.1], [2.2, 2.1, 5.9], [1.7, 1.6, 5.5]]),
    (Name::Update, [[5.3, 5.3, 10.0], [2.1, 1.8, 36.9], [2.4, 2.3, 6.9], [2.0, 1.9, 6.3]]),
];
/// Inserts of Figure 15 where the text gives a figure: SHADOW to PERSIST at least, SHADOW to WAL,
/// SHADOW-X to WAL.
const FIGURE_15: [(&Row, &Row, f64); 3] =
    [(PAPER, PERSIST, 2.0), (PAPER, WAL, 1.0), (EXCLUSIVE, WAL, 1.25)];

/// Everything.
pub fn compare(runner: &Runner<'_>) -> Result<Vec<Comparison>> {
    let volumes = [1, 3, 5]
        .into_iter()
        .map(|many| Ok((many, runner.counts(Choice::of(Name::Insert, many), &MODES)?)))
        .collect::<Result<Vec<_>>>()?;
    let mut all = vec![figure_13(&volumes[0].1), figure_14(&volumes)];
    all.push(figure_15(runner)?);
    all.extend(table_2(runner)?);
    all.push(figure_17(runner)?);
    all.push(figure_18(runner)?);
    Ok(all)
}

/// The papers' cost is all that is written, whenever it is.
fn kib(line: &Line) -> Option<f64> {
    line.cost.map(|cost| cost.kib + cost.later_kib)
}

fn figure_13(table: &Table) -> Comparison {
    let mut made = Comparison::new("DASH, Figure 13: one 100-byte insert", "at the device");
    for (row, name, paper) in [
        (PERSIST, "PERSIST", [Some(40.0), Some(5.0)]),
        (PAPER, "SHADOW / dash paper", [Some(12.0), Some(3.0)]),
        (EXCLUSIVE, "SHADOW-X / dash exclusive", [None, Some(2.0)]),
        (SINGLE, "dash single", [None, None]),
    ] {
        let line = table.line(row);
        made.add(format!("{name}: KiB"), paper[0], line.and_then(kib));
        let flushes = line.and_then(|line| line.cost).map(|cost| cost.flushes);
        made.add(format!("{name}: flushes"), paper[1], flushes);
    }
    made.note("dash writes a tail block per commit beside the pages: that is what makes one flush enough, and the paper's protocol lose no commit");
    made
}

fn figure_14(volumes: &[(usize, Table)]) -> Comparison {
    let mut made = Comparison::new(
        "DASH, Figure 14: I/O volume per transaction of 1, 3, 5 inserts",
        "KiB; share of PERSIST's",
    );
    for (many, table) in volumes {
        let persist = table.line(PERSIST).and_then(kib);
        for row in MODES {
            let Some(here) = table.line(row).and_then(kib) else { continue };
            made.add(format!("T{many}, {}: KiB", row.name), None, Some(here));
            if row != PERSIST {
                let paper = (*many == 1 && row == PAPER).then_some(1.0 / 3.0);
                let share = persist.map(|persist| here / persist);
                made.add(format!("T{many}, {}: share of PERSIST's", row.name), paper, share);
            }
        }
    }
    made.note("the paper's text: SHADOW writes as little as 1/3 of PERSIST (T1); the other bars have no figures");
    made
}

fn figure_15(runner: &Runner<'_>) -> Result<Comparison> {
    let mut made = Comparison::new(
        "DASH, Figure 15: throughput of 1, 3, 5 operations per transaction",
        "times the other's throughput",
    );
    for (name, word) in [(Name::Insert, "INS"), (Name::Update, "UPD"), (Name::Delete, "DEL")] {
        for many in [1, 3, 5] {
            let table = runner.times(Choice::of(name, many), &MODES)?;
            let rate = |row| table.line(row).map(|line| line.rate.median);
            let ratio = |one, other| Some(rate(one)? / rate(other)?);
            for (one, other, paper) in FIGURE_15 {
                let paper = (name == Name::Insert).then_some(paper);
                let what = format!("{word} T{many}: {} / {}", one.name, other.name);
                made.add(what, paper, ratio(one, other));
            }
            for other in [PERSIST, WAL] {
                let what = format!("{word} T{many}: dash single / {}", other.name);
                made.add(what, None, ratio(SINGLE, other));
            }
        }
    }
    made.note("the paper's text: inserts at least twice PERSIST's, SHADOW similar to WAL, SHADOW-X 25 % better; WAL here as it comes, checkpoints among the commits");
    Ok(made)
}

fn table_2(runner: &Runner<'_>) -> Result<Vec<Comparison>> {
    let mut all = Vec::new();
    for (name, paper) in TABLE_2 {
        let table = runner.times(Choice::of(name, 3), &MODES)?;
        let word = if name == Name::Insert { "inserting" } else { "updating" };
        let mut made = Comparison::new(
            format!("DASH, Table 2 (and Figure 16): {word} in three tables"),
            "latency, times PERSIST's",
        );
        let figures = |row| {
            table.line(row).map(|line| [line.latency.mean, line.latency.p50, line.latency.p999])
        };
        let persist = figures(PERSIST);
        let papers = [Some(paper[1]), Some(paper[2]), Some(paper[3]), None];
        for (row, theirs) in MODES.into_iter().skip(1).zip(papers) {
            for (at, which) in ["average", "median", "99.9 %"].into_iter().enumerate() {
                let theirs = theirs.map(|theirs| theirs[at] / paper[0][at]);
                let ours = figures(row).zip(persist).map(|(mine, base)| mine[at] / base[at]);
                made.add(format!("{}: {which}", row.name), theirs, ours);
            }
        }
        if let Some([average, median, tail]) = persist {
            made.note(format!("PERSIST: paper {} / {} / {} ms, here {:.3} / {:.3} / {:.3} ms (average, median, 99.9 %)", paper[0][0], paper[0][1], paper[0][2], average / 1e3, median / 1e3, tail / 1e3));
        }
        all.push(made);
    }
    Ok(all)
}

fn figure_17(runner: &Runner<'_>) -> Result<Comparison> {
    let mut made = Comparison::new(
        "DASH, Figure 17: recovery after a killed writer, open to the first row read",
        "times WAL's average",
    );
    let trials = runner.many(20);
    for many in [1, 5, 20] {
        let engines = [WAL, PERSIST, PAPER, SINGLE];
        let found = engines
            .into_iter()
            .map(|engine| {
                recovery::times(runner.volume()?, Choice::of(Name::Update, many), engine, trials)
            })
            .collect::<Result<Vec<_>>>()?;
        for (engine, times) in engines.into_iter().zip(&found) {
            let paper = (many == 5 && engine == PAPER).then_some(1.0 / 3.0);
            if engine != WAL {
                made.add(
                    format!("{many} updates, {}", engine.name),
                    paper,
                    Some(times.average / found[0].average),
                );
            }
            made.note(format!(
                "{many} updates, {}: {:.2} ms on average ({:.2} to {:.2}), {:.2} ms with the first commit",
                engine.name, times.average, times.shortest, times.longest, times.with_commit
            ));
        }
    }
    made.note("the log of WAL about half full (500 pages), as in the paper; writers are killed at any moment, the page cache stays");
    Ok(made)
}

fn figure_18(runner: &Runner<'_>) -> Result<Comparison> {
    let mut made = Comparison::new(
        "DASH, Figure 18: what carrying the last commit's pages along costs",
        "throughput, times that at 100 % in common",
    );
    for many in [3, 5, 10] {
        let rate = |share: usize| -> Result<Option<f64>> {
            let mut choice = Choice::of(Name::Duplication, many);
            choice.share = share;
            let table = runner.times(choice, &[PAPER])?;
            Ok(table.line(PAPER).map(|line| line.rate.median))
        };
        let whole = rate(100)?;
        for share in [50, 0] {
            let paper = match (share, many) {
                (50, _) => Some(0.95),
                (0, 10) => Some(1.0 / 1.08),
                _ => None,
            };
            let here = rate(share)?.zip(whole).map(|(rate, whole)| rate / whole);
            made.add(format!("T{many}, {share} % of the tables in common"), paper, here);
        }
    }
    made.note("the paper's text: 5 % less with about half the pages in common; T10 takes 8 % longer with none; measured one after the other here, not in turns");
    Ok(made)
}
