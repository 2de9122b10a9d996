//! Covariance of the table, of the model, and what the model leaves out.

use super::{communalities, conditions, largest, standardized_loadings};
use crate::layout::{LABEL, NARROW, Sheet, Words, color_bar, names_width, room};
use crate::scale::{count, minus, number};
use crate::svg::{Anchor, Font, Rect};
use crate::text::{Weight, shortened, width};
use crate::{Error, Style, Svg};
use covary::learned::Learned;
use covary::{CentralMoments, Dataset, LinearGaussian, Matrix, Noise};
use serde::{Deserialize, Serialize};

/// Columns drawn at most.
const MOST_COLUMNS: usize = 60;
/// Columns up to which cells carry their number.
const MOST_PRINTED: usize = 9;

/// The numbers behind three maps of covariances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CovarianceNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// Columns drawn.
    pub columns: Vec<String>,
    /// All columns.
    pub n_columns: usize,
    /// Of the table, over the rows that have both columns, in standard deviations of the columns.
    pub data: Vec<Vec<f64>>,
    /// Of the model, in the same units.
    pub fitted: Vec<Vec<f64>>,
    /// Root mean square of their difference, off the diagonal.
    pub residual: f64,
    /// Whether the model was learned from a matrix in place of a table.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_matrix: bool,
}

/// Asks for them; of many columns, those that the components explain best.
///
/// # Errors
/// [`covary::Error::ColumnCount`] if the table has other columns than the model.
pub fn numbers(learned: &Learned, data: &Dataset) -> Result<CovarianceNumbers, Error> {
    let drawn = drawn(learned, data.n_columns())?;
    let narrow = Matrix::from_fn(data.n_rows(), drawn.len(), |i, k| data.row(i)[drawn[k]]);
    let narrow = Dataset::new(narrow)?;
    beside_model(learned, &drawn, (&narrow.pairwise_covariance(), narrow.observed_variances()))
}

/// Asks for them where the model was learned from moments.
///
/// # Errors
/// [`covary::Error::ColumnCount`] if they have other columns than the model.
pub fn of_moments(learned: &Learned, moments: &CentralMoments) -> Result<CovarianceNumbers, Error> {
    let drawn = drawn(learned, moments.n_columns())?;
    let whole = moments.covariance();
    let narrow = Matrix::from_fn(drawn.len(), drawn.len(), |i, j| whole[(drawn[i], drawn[j])]);
    let variances: Vec<f64> = drawn.iter().map(|&j| whole[(j, j)]).collect();
    Ok(CovarianceNumbers { of_matrix: true, ..beside_model(learned, &drawn, (&narrow, &variances))? })
}

/// The columns to draw: of many, those that the components explain best.
fn drawn(learned: &Learned, n_columns: usize) -> Result<Vec<usize>, Error> {
    let expected = learned.columns.len();
    if n_columns != expected {
        return Err(covary::Error::ColumnCount { expected, got: n_columns }.into());
    }
    Ok(largest(&communalities(&standardized_loadings(learned)?.0), MOST_COLUMNS))
}

/// The covariance and the variances of the columns drawn, beside what the model has.
fn beside_model(
    learned: &Learned,
    drawn: &[usize],
    (covariance, variances): (&Matrix, &[f64]),
) -> Result<CovarianceNumbers, Error> {
    let model = &learned.linear()?.model;
    let w = Matrix::from_fn(drawn.len(), model.n_components(), |k, c| model.loadings()[(drawn[k], c)]);
    let noise = Noise::Diagonal(drawn.iter().map(|&j| model.noise().variance(j)).collect());
    let fitted =
        LinearGaussian::new(w, drawn.iter().map(|&j| model.mean()[j]).collect(), noise)?.covariance();
    // A column without variance has no deviation to measure by.
    let scale: Vec<f64> = variances.iter().map(|v| if *v > 0.0 { v.sqrt() } else { 1.0 }).collect();
    let scaled = |c: &Matrix| -> Vec<Vec<f64>> {
        (0..drawn.len())
            .map(|i| (0..drawn.len()).map(|j| c[(i, j)] / (scale[i] * scale[j])).collect())
            .collect()
    };
    let (data, fitted) = (scaled(covariance), scaled(&fitted));
    let n = drawn.len();
    let off = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
    let squares: f64 = off.map(|(i, j)| (data[i][j] - fitted[i][j]).powi(2)).sum();
    Ok(CovarianceNumbers {
        subject: conditions(learned),
        columns: drawn.iter().map(|&j| learned.columns[j].clone()).collect(),
        n_columns: learned.columns.len(),
        residual: if n > 1 { (squares / (n * (n - 1) / 2) as f64).sqrt() } else { 0.0 },
        data,
        fitted,
        of_matrix: false,
    })
}

/// Names are never smaller than 6 points.
pub(crate) const SMALLEST: f64 = 8.5;

/// Draws them.
pub fn draw(numbers: &CovarianceNumbers, style: &Style) -> Svg {
    let n = numbers;
    let m = n.columns.len();
    let title = format!("The model leaves correlations of {} unexplained on average", number(n.residual, 2));
    let mut note = vec!["Covariances in units of the standard deviations of the columns. Orange is negative, blue is positive; the difference has its own scale.".to_owned()];
    if m < n.n_columns {
        note.push(format!(
            "Shown are the {m} of {} columns that the components explain best.",
            count(n.n_columns)
        ));
    }
    let names = names_width(&n.columns, 170.0);
    let side = 250.0;
    let wide = (3.0 * side + names + 220.0).clamp(760.0, 1160.0);
    let (bar_room, room) = (52.0, room(style, wide));
    // Where three do not fit side by side they stand below each other.
    let stacked = room < NARROW + 120.0;
    let names = names.min(if stacked { 0.34 } else { 0.2 } * room);
    let upright = names.min(if stacked { 80.0 } else { 120.0 });
    let side = if stacked { (room - names - 8.0 - bar_room).min(300.0) } else { side };
    let step = side + 40.0;
    let tall = if stacked { 3.0 * step + upright } else { step + upright };
    let mut sheet = Sheet::new(
        style,
        (wide, tall),
        &Words { title: &title, subtitle: &n.subject, note: &note.join(" ") },
    );
    let (body, p) = (sheet.body, sheet.canvas.palette());
    let canvas = &mut sheet.canvas;
    let rest = body.w - names - 8.0 - 2.0 * bar_room - 24.0;
    let side = if stacked {
        side.min((body.h - upright) / 3.0 - 40.0)
    } else {
        (rest / 3.0).min(body.h - 30.0 - upright)
    }
    .max(12.0);
    let cell = side / m.max(1) as f64;
    let top = body.y + 26.0;
    let left = body.x + names + 8.0;
    let difference: Vec<Vec<f64>> =
        n.data.iter().zip(&n.fitted).map(|(a, b)| a.iter().zip(b).map(|(a, b)| a - b).collect()).collect();
    let size = |maps: &[&Vec<Vec<f64>>]| {
        maps.iter().flat_map(|m| m.iter().flatten()).fold(0.0_f64, |s, v| s.max(v.abs()))
    };
    // The diagonal is 1 in the table; what counts is beside it.
    let whole = size(&[&n.data, &n.fitted]).max(1e-12);
    let rest_size = size(&[&difference]).max(1e-12);
    let rest_size = if rest_size < 1e-9 { whole } else { rest_size };
    let places: [(f64, f64); 3] = if stacked {
        [0.0, 1.0, 2.0].map(|k| (left, top + k * (side + 40.0)))
    } else {
        [left, left + side + 24.0, left + 2.0 * side + 24.0 + bar_room].map(|x| (x, top))
    };
    let given = if n.of_matrix { "matrix" } else { "observed" };
    let rest = format!("{given} − model");
    let maps =
        [(given, &n.data, whole), ("model", &n.fitted, whole), (rest.as_str(), &difference, rest_size)];
    for (k, (name, map, largest)) in maps.iter().enumerate() {
        let (x, top) = places[k];
        canvas.text((x, top - 9.0), name, Font::default());
        paint(canvas, Rect { x, y: top, w: side, h: side }, map, |v| p.diverging(v / largest));
        for (i, row) in map.iter().enumerate().filter(|_| m <= MOST_PRINTED) {
            for (j, v) in row.iter().enumerate() {
                let at = (x + (j as f64 + 0.5) * cell, top + (i as f64 + 0.5) * cell + 3.0);
                let back = p.diverging(v / largest);
                let ink = if (back.gray() > 0.5) == (p.ink.gray() < 0.5) { p.ink } else { p.paper };
                let font = Font { size: 9.0, ..Font::label(ink, Anchor::Middle) };
                // Adding 0 turns −0 into 0.
                canvas.text(at, &minus(&format!("{:.2}", (v * 100.0).round() / 100.0 + 0.0)), font);
            }
        }
    }
    // Of many columns every second or third has a name.
    let size = (0.86 * cell).clamp(SMALLEST, LABEL);
    let every = (SMALLEST / cell).ceil().max(1.0) as usize;
    let (beside, below) = (shortened(&n.columns, size, names), shortened(&n.columns, size, upright));
    let font = Font { size, ..Font::label(p.ink, Anchor::End) };
    for (i, name) in n.columns.iter().enumerate().step_by(every) {
        let middle = (i as f64 + 0.5) * cell;
        for (k, (x, top)) in places.into_iter().enumerate() {
            if stacked || k == 0 {
                canvas.name((x - 6.0, top + middle), name, &beside[i..=i], font);
            }
            if !stacked || k == 2 {
                let at = (x + middle + 0.35 * size, top + side + 6.0);
                let font = Font { turn: -90.0, color: Some(p.muted), ..font };
                canvas.labeled("", name, |canvas| canvas.text(at, &below[i], font));
            }
        }
    }
    let bars = [(places[usize::from(!stacked)], whole), (places[2], rest_size)];
    for ((x, top), largest) in bars {
        let bar = Rect { x: x + side + 8.0, y: top, w: 9.0, h: side.min(160.0) };
        let ticks = [(0.0, number(-largest, 2)), (0.5, "0".to_owned()), (1.0, number(largest, 2))];
        debug_assert!(width(&ticks[0].1, LABEL, Weight::Regular) < bar_room);
        color_bar(canvas, bar, |share| p.diverging(2.0 * share - 1.0), &ticks);
    }
    sheet.finish()
}

/// Cells of a matrix as rectangles, one path for each shade.
pub(crate) fn paint(
    canvas: &mut crate::svg::Canvas,
    area: Rect,
    cells: &[Vec<f64>],
    color: impl Fn(f64) -> crate::theme::Color,
) {
    let mut shades = std::collections::BTreeMap::<[u8; 3], Vec<Rect>>::new();
    let (rows, columns) = (cells.len().max(1) as f64, cells.first().map_or(1, Vec::len).max(1) as f64);
    let (w, h) = (area.w / columns, area.h / rows);
    for (i, row) in cells.iter().enumerate() {
        let mut j = 0;
        while j < row.len() {
            // Neighbors of one shade are one rectangle; shades are steps of 4 in 256.
            let own = color(row[j]).0.map(|c| c & 0xfc);
            let start = j;
            while j < row.len() && color(row[j]).0.map(|c| c & 0xfc) == own {
                j += 1;
            }
            let cell =
                Rect { x: area.x + start as f64 * w, y: area.y + i as f64 * h, w: (j - start) as f64 * w, h };
            shades.entry(own).or_default().push(cell);
        }
    }
    for (shade, cells) in shades {
        canvas.cells(&cells, crate::theme::Color(shade.map(|c| c | (c >> 6))));
    }
}
