//! A plot: latency by percentile, a panel per table, a line per row. The SVG needs nothing beside
//! it.

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::failure::{Explain, Result};
use crate::table::{Line, Table};

/// Pixels of a panel.
const PANEL: (u32, u32) = (1100, 520);

/// Of all tables, under each other.
pub fn of(tables: &[Table]) -> Result<String> {
    let mut drawing = String::new();
    let panels = u32::try_from(tables.len()).explain("counting tables")?.max(1);
    {
        let area =
            SVGBackend::with_string(&mut drawing, (PANEL.0, PANEL.1 * panels)).into_drawing_area();
        area.fill(&WHITE).explain("drawing")?;
        for (part, table) in area.split_evenly((tables.len().max(1), 1)).iter().zip(tables) {
            panel(part, table)?;
        }
        area.present().explain("drawing")?;
    }
    Ok(drawing)
}

/// A percentile's place: each further nine is one step to the right.
fn place(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).log10()
}

fn panel(area: &DrawingArea<SVGBackend<'_>, Shift>, table: &Table) -> Result<()> {
    let lines: Vec<&Line> = table.lines.iter().filter(|line| line.latency.count > 0).collect();
    let all = || lines.iter().flat_map(|line| line.curve.iter().map(|(_, micros)| *micros));
    let low = all().fold(f64::INFINITY, f64::min).max(0.1) * 0.8;
    let high = all().fold(1.0, f64::max) * 1.3;
    let low = if low < high { low } else { high / 2.0 };
    let title: String = table.about.chars().take(110).collect();
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..4.1, (low..high).log_scale())
        .explain("drawing")?;
    chart
        .configure_mesh()
        .x_desc("percentile")
        .y_desc("microseconds")
        .x_labels(5)
        .x_label_formatter(&|at: &f64| match at.round() {
            0.0 => "0".into(),
            1.0 => "90".into(),
            2.0 => "99".into(),
            3.0 => "99.9".into(),
            _ => "99.99".into(),
        })
        .y_label_formatter(&|micros: &f64| super::cells::micros(*micros))
        .draw()
        .explain("drawing")?;
    for (at, line) in lines.iter().enumerate() {
        let color = Palette99::pick(at).to_rgba();
        let width = if line.row.starts_with("dash") { 3 } else { 1 };
        let points =
            line.curve.iter().map(|(percentile, micros)| (place(*percentile), micros.max(low)));
        chart
            .draw_series(LineSeries::new(points, color.stroke_width(width)))
            .explain("drawing")?
            .label(line.name.clone())
            .legend(move |(x, y)| {
                PathElement::new([(x, y), (x + 18, y)], color.stroke_width(width))
            });
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()
        .explain("drawing")?;
    Ok(())
}
