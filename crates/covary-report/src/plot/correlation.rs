//! Correlations of the columns, in an order that brings similar columns together.

use super::covariance::SMALLEST;
use crate::layout::{LABEL, Sheet, Words, names_width, room, titled_bar};
use crate::scale::{count, minus, number, several};
use crate::svg::{Anchor, Font, Rect};
use crate::text::shortened;
use crate::{Style, Svg};
use covary::Dataset;
use serde::{Deserialize, Serialize};

/// Columns drawn at most.
const MOST_COLUMNS: usize = 60;
/// Up to this many columns, correlations are printed in their cells.
const MOST_PRINTED: usize = 14;

/// The numbers behind a heat map of correlations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CorrelationNumbers {
    /// Rows and columns of the table.
    pub n_rows: usize,
    /// All columns.
    pub n_columns: usize,
    /// Columns drawn, similar ones beside each other.
    pub columns: Vec<String>,
    /// Pearson correlations over the rows where both columns are observed; none where these are too few or constant.
    pub correlations: Vec<Vec<Option<f64>>>,
}

/// Computes them; of many columns, for those with the most values.
pub fn numbers(data: &Dataset) -> CorrelationNumbers {
    let (n, d) = (data.n_rows(), data.n_columns());
    let observed = |j: usize| (0..n).filter(|&i| !data.row(i)[j].is_nan()).count() as f64;
    let kept = super::largest(&(0..d).map(observed).collect::<Vec<_>>(), MOST_COLUMNS);
    let columns: Vec<Vec<f64>> = kept.iter().map(|&j| data.values().column(j)).collect();
    let m = kept.len();
    let mut r = vec![vec![None; m]; m];
    for i in 0..m {
        for j in 0..=i {
            r[i][j] = correlation(&columns[i], &columns[j]);
            r[j][i] = r[i][j];
        }
    }
    let order = by_similarity(&r);
    CorrelationNumbers {
        n_rows: n,
        n_columns: d,
        columns: order.iter().map(|&k| data.column_names()[kept[k]].clone()).collect(),
        correlations: order.iter().map(|&i| order.iter().map(|&j| r[i][j]).collect()).collect(),
    }
}

/// Pearson's correlation over the places where both are numbers, three at least.
fn correlation(x: &[f64], y: &[f64]) -> Option<f64> {
    let both: Vec<(f64, f64)> =
        x.iter().zip(y).filter(|(a, b)| !a.is_nan() && !b.is_nan()).map(|(a, b)| (*a, *b)).collect();
    if both.len() < 3 {
        return None;
    }
    let n = both.len() as f64;
    let (mx, my) = (both.iter().map(|p| p.0 / n).sum::<f64>(), both.iter().map(|p| p.1 / n).sum::<f64>());
    // Scaled first, so that squares of huge or tiny numbers stay numbers.
    let largest = |of: &dyn Fn(&(f64, f64)) -> f64| both.iter().map(|p| of(p).abs()).fold(0.0, f64::max);
    let (sx, sy) = (largest(&|p| p.0 - mx), largest(&|p| p.1 - my));
    let constant = |s: f64, m: f64| s <= 1e-13 * m.abs() || s == 0.0;
    if constant(sx, mx) || constant(sy, my) {
        return None;
    }
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| both.iter().map(|p| of((p.0 - mx) / sx, (p.1 - my) / sy)).sum::<f64>();
    let (xx, xy, yy) = (sum(&|a, _| a * a), sum(&|a, b| a * b), sum(&|_, b| b * b));
    Some((xy / (xx * yy).sqrt()).clamp(-1.0, 1.0))
}

/// Leaves of average linkage on 1 − |r|; of two branches, the one whose end is closer to the other is turned to it.
fn by_similarity(r: &[Vec<Option<f64>>]) -> Vec<usize> {
    let far = |i: usize, j: usize| 1.0 - r[i][j].unwrap_or(0.0).abs();
    let mut groups: Vec<Vec<usize>> = (0..r.len()).map(|k| vec![k]).collect();
    while groups.len() > 1 {
        let between = |a: &[usize], b: &[usize]| {
            let sum: f64 = a.iter().flat_map(|&i| b.iter().map(move |&j| far(i, j))).sum();
            sum / (a.len() * b.len()) as f64
        };
        let mut nearest = (f64::INFINITY, 0, 1);
        for b in 1..groups.len() {
            for a in 0..b {
                let distance = between(&groups[a], &groups[b]);
                if distance < nearest.0 - 1e-12 {
                    nearest = (distance, a, b);
                }
            }
        }
        let (_, a, b) = nearest;
        let mut second = groups.remove(b);
        let first = &mut groups[a];
        let ends = |v: &[usize]| (v[0], v[v.len() - 1]);
        let (f, s) = (ends(first), ends(&second));
        let turns = [
            (far(f.1, s.0), false, false),
            (far(f.1, s.1), false, true),
            (far(f.0, s.0), true, false),
            (far(f.0, s.1), true, true),
        ];
        let best = turns.into_iter().fold(turns[0], |m, t| if t.0 < m.0 - 1e-12 { t } else { m });
        if best.1 {
            first.reverse();
        }
        if best.2 {
            second.reverse();
        }
        first.extend(second);
    }
    groups.pop().unwrap_or_default()
}

/// Draws them.
pub fn draw(numbers: &CorrelationNumbers, style: &Style) -> Svg {
    let n = numbers;
    let m = n.columns.len();
    let title = strongest(n);
    let subtitle = format!("{} of {}", several(n.n_rows, "row"), several(n.n_columns, "column"));
    let mut note = vec![
        "Pearson correlations over the rows where both columns are observed; columns are ordered by average linkage on 1 − |r|. \
         Orange is negative, blue is positive."
            .to_owned(),
    ];
    if m < n.n_columns {
        note.push(format!("Shown are the {m} of {} columns with the most values.", count(n.n_columns)));
    }
    if n.correlations.iter().flatten().any(Option::is_none) {
        note.push("Gray: no correlation, since values are too few or constant.".to_owned());
    }
    let bar = 62.0;
    let names = names_width(&n.columns, 170.0);
    let usual = (31.0 * m as f64).clamp(180.0, 560.0) + names + bar + 44.0;
    let wide = room(style, usual);
    let names = names.min(0.3 * wide);
    let side = (wide - names - 8.0 - if wide < 330.0 { 44.0 } else { bar }).min(620.0);
    let upright = names.min(110.0);
    let words = Words { title: &title, subtitle: &subtitle, note: &note.join(" ") };
    let mut sheet = Sheet::new(style, (usual, side + upright + 14.0), &words);
    let (body, canvas) = (sheet.body, &mut sheet.canvas);
    let p = canvas.palette();
    let side = side.min(body.h - upright - 14.0).max(12.0);
    let area = Rect { x: body.x + names + 8.0, y: body.y + 4.0, w: side, h: side };
    let cell = side / m.max(1) as f64;
    let values: Vec<Vec<f64>> =
        n.correlations.iter().map(|row| row.iter().map(|r| r.unwrap_or(f64::NAN)).collect()).collect();
    super::covariance::paint(canvas, area, &values, |v| if v.is_nan() { p.gap } else { p.diverging(v) });
    let size = (0.36 * cell).min(LABEL);
    for (i, row) in n.correlations.iter().enumerate().filter(|_| m <= MOST_PRINTED && size >= 8.4) {
        for (j, r) in row.iter().enumerate().filter(|(j, _)| *j != i) {
            let Some(r) = r else { continue };
            let back = p.diverging(*r);
            let ink = if back.contrast(p.ink) > back.contrast(p.paper) { p.ink } else { p.paper };
            let at = (area.x + (j as f64 + 0.5) * cell, area.y + (i as f64 + 0.5) * cell + 0.36 * size);
            let font = Font { size, ..Font::label(ink, Anchor::Middle) };
            // Without the 0 before the point, as correlations are printed: neighbors do not touch.
            let text = format!("{:.2}", (100.0 * r).round() / 100.0 + 0.0).replacen("0.", ".", 1);
            canvas.text(at, &minus(&text), font);
        }
    }
    let size = (0.86 * cell).clamp(SMALLEST, LABEL);
    let every = (SMALLEST / cell).ceil().max(1.0) as usize;
    let (beside, below) = (shortened(&n.columns, size, names), shortened(&n.columns, size, upright));
    for (i, name) in n.columns.iter().enumerate().step_by(every) {
        let middle = (i as f64 + 0.5) * cell;
        let font = Font { size, ..Font::label(p.ink, Anchor::End) };
        canvas.name((area.x - 6.0, area.y + middle), name, &beside[i..=i], font);
        let at = (area.x + middle + 0.35 * size, area.bottom() + 6.0);
        canvas.labeled("", name, |canvas| canvas.text(at, &below[i], Font { turn: -90.0, ..font }));
    }
    let ticks = [(0.0, "−1".to_owned()), (0.5, "0".to_owned()), (1.0, "1".to_owned())];
    let key = Rect { x: area.right() + 12.0, y: area.y, w: bar - 12.0, h: side.min(180.0) };
    titled_bar(canvas, key, "r", |share| p.diverging(2.0 * share - 1.0), &ticks);
    sheet.finish()
}

/// The pair with the largest correlation, of either sign.
fn strongest(n: &CorrelationNumbers) -> String {
    let pairs = (0..n.columns.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
    let known = pairs.filter_map(|(i, j)| Some((n.correlations[i][j]?, i, j)));
    match { known }.fold(None, |m: Option<(f64, usize, usize)>, c| match m {
        Some(m) if m.0.abs() >= c.0.abs() => Some(m),
        _ => Some(c),
    }) {
        Some((r, i, j)) => {
            let names = shortened(&n.columns, LABEL, 150.0);
            format!(
                "Correlations of the columns: the largest is {} between {} and {}",
                number(r, 2),
                names[j],
                names[i]
            )
        }
        None => "Correlations of the columns".to_owned(),
    }
}
