//! Draws the figures of a folder that `covary reproduce` wrote as PNG beside their SVG, for eyes:
//!
//!     cargo run --release -p covary-reproduce --example look -- DIR

use covary_report::Style;
use covary_reproduce::{EXHIBITS, Record};
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("which folder?")?);
    for exhibit in EXHIBITS {
        let Ok(text) = std::fs::read_to_string(folder.join(format!("{}.json", exhibit.name))) else {
            continue;
        };
        let record: Record = serde_json::from_str(&text)?;
        for (name, chart) in record.figure_names().iter().zip(&record.charts) {
            let svg = chart.draw(&Style::default());
            let png = covary_png::png(svg.as_str(), svg.size(), 1.0)?;
            std::fs::write(folder.join(name).with_extension("png"), png)?;
        }
    }
    Ok(())
}
