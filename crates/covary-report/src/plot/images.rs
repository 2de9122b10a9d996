//! Rows as images: digits, faces, fields.

use super::conditions;
use crate::layout::{LABEL, NARROW, Sheet, Words, room};
use crate::scale::{percent, several};
use crate::svg::{Anchor, Font, Rect, Stroke};
use crate::text::shorten;
use crate::{Error, Style, Svg};
use covary::learned::Learned;
use covary::{Dataset, Reconstruction};
use serde::{Deserialize, Serialize};

/// Pictures in a line.
const ACROSS: usize = 8;
/// Gray levels, each one path.
const LEVELS: f64 = 24.0;

/// A picture: its cells row by row, none where one is missing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tile {
    /// What stands below it.
    pub caption: String,
    /// Its cells.
    pub cells: Vec<Option<f64>>,
}

/// A line of pictures with one range of values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Strip {
    /// What they are.
    pub name: String,
    /// Whether zero is the middle of the colors.
    pub signed: bool,
    /// The pictures.
    pub tiles: Vec<Tile>,
}

/// The numbers behind pictures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImagesNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// Rows and columns of a picture.
    pub shape: (usize, usize),
    /// The lines.
    pub strips: Vec<Strip>,
    /// Rows of the table, if one was given.
    pub n_rows: Option<usize>,
}

/// Asks for them: the mean and the first components; with a table, some of its rows and how the model
/// sees them.
///
/// # Errors
/// [`Error::WrongShape`] if a row is not an image of this shape, and
/// [`covary::Error::ColumnCount`] if the table has other columns than the model.
pub fn numbers(
    learned: &Learned,
    data: Option<&Dataset>,
    shape: (usize, usize),
) -> Result<ImagesNumbers, Error> {
    let linear = learned.linear()?;
    let d = learned.columns.len() + learned.constants.len();
    let cells = shape.0.saturating_mul(shape.1);
    if cells != d || cells == 0 {
        return Err(Error::WrongShape { rows: shape.0, columns: shape.1, cells, has: d });
    }
    let model = &linear.model;
    let place = places(learned);
    let spread = |values: &dyn Fn(usize) -> f64, constant: bool| -> Vec<Option<f64>> {
        place
            .iter()
            .map(|p| match *p {
                Ok(j) => Some(values(j)).filter(|v| !v.is_nan()),
                Err(value) => constant.then_some(value).or(Some(0.0)),
            })
            .collect()
    };
    let mean = Tile { caption: "mean".to_owned(), cells: spread(&|j| model.mean()[j], true) };
    let mut strips = Vec::new();
    let shares = model.explained_variance_ratio();
    let component = |k: usize| Tile {
        caption: format!("{}: {}", k + 1, percent(shares[k])),
        cells: spread(&|j| model.loadings()[(j, k)], false),
    };
    if let Some(data) = data {
        let rows = data.spread_rows(ACROSS - 1);
        let some = data.of_rows(&rows)?;
        let seen = model.reconstruct(&some, Reconstruction::PosteriorMean)?;
        let real = |k: usize| Tile {
            caption: format!("row {}", rows[k] + 1),
            cells: spread(&|j| some.row(k)[j], true),
        };
        let smooth = |k: usize| Tile { caption: String::new(), cells: spread(&|j| seen[(k, j)], true) };
        strips.push(Strip {
            name: "rows of the table".to_owned(),
            signed: false,
            tiles: (0..rows.len()).map(real).collect(),
        });
        strips.push(Strip {
            name: "reconstructed by the model".to_owned(),
            signed: false,
            tiles: (0..rows.len()).map(smooth).collect(),
        });
    }
    let shown = model.n_components().min(ACROSS);
    if shown > 0 {
        strips.push(Strip {
            name: "loadings, with their proportion of variance".to_owned(),
            signed: true,
            tiles: (0..shown).map(component).collect(),
        });
    }
    // The mean stands before the rows, or alone.
    match strips.first_mut().filter(|strip| !strip.signed) {
        Some(rows) => {
            "mean and rows of the table".clone_into(&mut rows.name);
            rows.tiles.insert(0, mean);
            // A reconstruction stands below its row.
            if let Some(smooth) = strips.get_mut(1).filter(|strip| !strip.signed) {
                smooth.tiles.insert(0, Tile { caption: String::new(), cells: Vec::new() });
            }
        }
        None => strips.insert(0, Strip { name: "mean".to_owned(), signed: false, tiles: vec![mean] }),
    }
    Ok(ImagesNumbers { subject: conditions(learned), shape, strips, n_rows: data.map(Dataset::n_rows) })
}

/// For each cell of a picture the model's column, or the constant that it always was. Columns that carry
/// a number at the end of their names (`x17`, `pixel_204`) stand in its order, others as the model has them.
fn places(learned: &Learned) -> Vec<Result<usize, f64>> {
    let number = |name: &str| {
        let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        name[name.len() - digits..].parse::<u64>().ok()
    };
    let columns = learned.columns.iter().enumerate().map(|(j, name)| (number(name), Ok(j)));
    let constants = learned.constants.iter().map(|c| (number(&c.name), Err(c.value)));
    let mut all: Vec<(Option<u64>, Result<usize, f64>)> = columns.chain(constants).collect();
    if !learned.constants.is_empty() && all.iter().all(|(n, _)| n.is_some()) {
        all.sort_by_key(|(n, _)| *n);
    }
    all.into_iter().map(|(_, p)| p).collect()
}

/// Draws them.
pub fn draw(numbers: &ImagesNumbers, style: &Style) -> Svg {
    let n = numbers;
    let (rows, columns) = (n.shape.0 as f64, n.shape.1 as f64);
    let most = n.strips.iter().map(|s| s.tiles.len()).max().unwrap_or(1).max(1);
    let title = match n.n_rows {
        Some(_) => "Rows and components as images",
        None => "Components as images",
    };
    let mut note: Vec<String> = Vec::new();
    let rows_shown = n.strips[0].tiles.iter().filter(|tile| tile.caption != "mean").count();
    if let Some(of) = n.n_rows.filter(|r| *r > rows_shown) {
        note.push(format!("{rows_shown} of {} are shown, evenly spread over the table.", several(of, "row")));
    }
    if n.strips.iter().flat_map(|s| &s.tiles).any(|t| t.cells.iter().any(Option::is_none)) {
        note.push("Orange: missing values.".to_owned());
    }
    note.push(
        "Dark is low and light is high, on one scale; for loadings, orange is negative and blue is positive."
            .to_owned(),
    );
    let side = 92.0;
    let tall = side * rows / columns.max(1.0);
    let tall = tall.clamp(30.0, 180.0);
    let wide = tall * columns / rows.max(1.0);
    let usual = (wide + 12.0) * most.max(5) as f64 + 36.0;
    let usual = usual.clamp(480.0, 1100.0);
    let room = room(style, usual);
    // A picture is never wider than the figure; what does not fit beside stands below, four in a line of a narrow figure.
    let widest = if room < NARROW && most > 2 { (room + 12.0) / most.min(4) as f64 - 12.0 } else { room };
    let shrink = (widest / wide).min(1.0);
    let (wide, tall) = (wide * shrink, tall * shrink);
    let line = tall + 44.0;
    let across = ((room + 12.0) / (wide + 12.0)).floor().clamp(1.0, most as f64) as usize;
    let more: usize = n.strips.iter().map(|s| s.tiles.len().div_ceil(across).max(1) - 1).sum();
    let height = line * n.strips.len() as f64 + (tall + 18.0) * more as f64;
    let lines = (height / line).max(1.0);
    let mut sheet =
        Sheet::new(style, (usual, height), &Words { title, subtitle: &n.subject, note: &note.join(" ") });
    let (body, p) = (sheet.body, sheet.canvas.palette());
    let canvas = &mut sheet.canvas;
    let fit = (body.h / (line * lines)).min(1.0);
    let (wide, tall, line) = (wide * fit, tall * fit, line * fit);
    // One scale of gray for all that is not signed: what the table holds, so that rows and their reconstructions compare.
    let of_table = n.strips.iter().filter(|s| !s.signed).take(1);
    let values = of_table.flat_map(|s| s.tiles.iter().flat_map(|t| t.cells.iter().flatten().copied()));
    let (low, high) = crate::scale::Scale::over(values, false).ends();
    let mut top = body.y;
    for strip in &n.strips {
        let heading = shorten(&strip.name, LABEL, body.w);
        canvas.text((body.x, top + 11.0), &heading, Font::default());
        for (k, tile) in strip.tiles.iter().enumerate().filter(|(_, tile)| !tile.cells.is_empty()) {
            let (across, down) = ((k % across) as f64, (k / across) as f64);
            let area = Rect {
                x: body.x + across * (wide + 12.0),
                y: top + 19.0 + down * (tall + 18.0),
                w: wide,
                h: tall,
            };
            // A component has a size of its own: pale ones would all look alike otherwise.
            let largest = tile.cells.iter().flatten().fold(1e-300_f64, |m, v| m.max(v.abs()));
            let quantized = |v: &Option<f64>| {
                v.map_or(f64::NAN, |v| {
                    let share =
                        if strip.signed { v / largest } else { ((v - low) / (high - low)).clamp(0.0, 1.0) };
                    (share * LEVELS).round() / LEVELS
                })
            };
            let picture: Vec<Vec<f64>> =
                tile.cells.chunks(n.shape.1).map(|row| row.iter().map(quantized).collect()).collect();
            let (dark, light) = (crate::theme::Color([16, 16, 16]), crate::theme::Color([248, 248, 248]));
            super::covariance::paint(canvas, area, &picture, |v| {
                if v.is_nan() {
                    p.second.towards(p.paper, 0.35)
                } else if strip.signed {
                    p.diverging(v)
                } else {
                    dark.towards(light, v)
                }
            });
            canvas.frame(area, None, Stroke::new(p.grid, 0.8));
            let caption = shorten(&tile.caption, LABEL - 1.0, wide + 10.0);
            let font = Font { size: LABEL - 1.0, ..Font::label(p.muted, Anchor::Start) };
            canvas.text((area.x, area.bottom() + 12.0), &caption, font);
        }
        top += line + (tall + 18.0) * (strip.tiles.len().div_ceil(across).max(1) - 1) as f64;
    }
    sheet.finish()
}
