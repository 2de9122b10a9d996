//! Coverage of prediction intervals, column by column.

use super::conditions;
use crate::layout::{LABEL, Sheet, Words, names_width, room};
use crate::scale::{Scale, count, percent, several};
use crate::svg::{Anchor, Font, Stroke};
use crate::text::{in_tip, name_lines, shorten};
use crate::{Error, Style, Svg};
use covary::Dataset;
use covary::learned::Learned;
use covary::select::CheckedCell;
use serde::{Deserialize, Serialize};

/// Columns drawn at most: those that were hidden most often.
const MOST_COLUMNS: usize = 40;
/// Level of the intervals.
const LEVEL: f64 = 0.9;
/// Probability of the interval around a proportion: 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// A column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OfColumn {
    /// Its name.
    pub column: String,
    /// Cells hidden.
    pub n_hidden: usize,
    /// Proportion of them that the intervals covered.
    pub coverage: f64,
    /// 95 % interval of that proportion (Wilson 1927).
    pub between: (f64, f64),
}

/// The numbers behind the figure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// Level of the prediction intervals.
    pub level: f64,
    /// Cells hidden in all.
    pub n_hidden: usize,
    /// Proportion covered in all.
    pub coverage: f64,
    /// Columns with a hidden cell.
    pub n_columns: usize,
    /// The columns, in the order of the table.
    pub columns: Vec<OfColumn>,
}

/// Arranges the cells that [`covary::select::self_check_by_cell`] found.
///
/// # Errors
/// [`covary::Error::NothingToCompare`] if there are none.
pub fn numbers(
    learned: &Learned,
    data: &Dataset,
    checked: &[CheckedCell],
) -> Result<CalibrationNumbers, Error> {
    if checked.is_empty() {
        return Err(covary::Error::NothingToCompare.into());
    }
    let mut counts = vec![(0, 0); data.n_columns()];
    for cell in checked {
        let covered = (cell.pit() - 0.5).abs() <= 0.5 * LEVEL;
        let (n, inside) = &mut counts[cell.cell.column];
        (*n, *inside) = (*n + 1, *inside + usize::from(covered));
    }
    let hidden: Vec<f64> = counts.iter().map(|c| f64::from(c.0)).collect();
    let shown = super::largest(&hidden, MOST_COLUMNS);
    let column = |&j: &usize| {
        let (n, inside) = counts[j];
        (n > 0).then(|| OfColumn {
            column: data.column_names()[j].clone(),
            n_hidden: n as usize,
            coverage: inside as f64 / f64::from(n),
            between: wilson(inside as f64 / f64::from(n), f64::from(n)),
        })
    };
    let covered: usize = counts.iter().map(|c| c.1).sum();
    Ok(CalibrationNumbers {
        subject: conditions(learned),
        level: LEVEL,
        n_hidden: checked.len(),
        coverage: covered as f64 / checked.len() as f64,
        n_columns: counts.iter().filter(|c| c.0 > 0).count(),
        columns: shown.iter().filter_map(column).collect(),
    })
}

/// ```text
/// (p + z²/2n ± z √(p (1 − p)/n + z²/4n²)) / (1 + z²/n)
/// ```
fn wilson(p: f64, n: f64) -> (f64, f64) {
    let (shrink, middle) = (1.0 + Z * Z / n, p + 0.5 * Z * Z / n);
    let half = Z * (p * (1.0 - p) / n + 0.25 * Z * Z / (n * n)).sqrt();
    (((middle - half) / shrink).max(0.0), ((middle + half) / shrink).min(1.0))
}

/// Draws them: a point and an interval for each column beside the level.
pub fn draw(numbers: &CalibrationNumbers, style: &Style) -> Svg {
    let n = numbers;
    let off = |c: &&OfColumn| c.between.0 > n.level || c.between.1 < n.level;
    let apart = n.columns.iter().filter(off).count();
    let level = format!("{:.0} %", 100.0 * n.level);
    let title = match apart {
        0 => format!("{level} prediction intervals are calibrated in every column"),
        k => {
            format!("{level} prediction intervals deviate in {} of {}", k, several(n.columns.len(), "column"))
        }
    };
    let mut note = vec![format!(
        "Observed cells were hidden, the model was fitted again without them, and its intervals were compared: {} of {} covered in \
         all. Lines: 95 % intervals of the proportion (Wilson); of 20 calibrated columns one deviates by chance.",
        percent(n.coverage),
        several(n.n_hidden, "cell")
    )];
    if n.columns.len() < n.n_columns {
        note.push(format!(
            "Shown are the {} of {} columns with most hidden cells.",
            n.columns.len(),
            count(n.n_columns)
        ));
    }
    let names: Vec<String> = n.columns.iter().map(|c| c.column.clone()).collect();
    let names_room = names_width(&names, 200.0).min(0.4 * room(style, 560.0));
    let tall = 20.0 * n.columns.len().max(1) as f64 + 60.0;
    let words = Words { title: &title, subtitle: &n.subject, note: &note.join(" ") };
    let mut sheet = Sheet::new(style, (560.0, tall), &words);
    let (body, canvas) = (sheet.body, &mut sheet.canvas);
    let p = canvas.palette();
    let area = body.inside(names_room + 10.0, 20.0, 46.0, 38.0);
    let least = n.columns.iter().map(|c| c.between.0).fold(n.level, f64::min);
    let scale = Scale::Linear { from: (10.0 * least).floor() / 10.0, to: 1.0 };
    let place = |v: f64| area.x + area.w * scale.place(v);
    for tick in scale.ticks((area.w / 60.0).clamp(2.0, 5.0) as usize) {
        let x = place(tick.value);
        canvas.line((x, area.y), (x, area.bottom()), Stroke::new(p.grid, 1.0));
        let text = format!("{:.0} %", 100.0 * tick.value);
        canvas.text((x, area.bottom() + 15.0), &text, Font::label(p.muted, Anchor::Middle));
    }
    let x = place(n.level);
    canvas.line((x, area.y), (x, area.bottom()), Stroke::new(p.ink, 1.2).dashed(4.0));
    canvas.text((area.right() + 42.0, area.y - 8.0), "hidden", Font::label(p.muted, Anchor::End));
    let shown = name_lines(&names, LABEL, names_room, 1);
    let line = area.h / n.columns.len().max(1) as f64;
    for (j, c) in n.columns.iter().enumerate() {
        let y = area.y + (j as f64 + 0.5) * line;
        canvas.name((area.x - 8.0, y), &c.column, &shown[j], Font::label(p.ink, Anchor::End));
        canvas.text((area.right() + 42.0, y + 4.0), &count(c.n_hidden), Font::label(p.muted, Anchor::End));
        let color = if off(&c) { p.second } else { p.main };
        let tip = format!(
            "{}: {} of {} covered",
            in_tip(&c.column),
            percent(c.coverage),
            several(c.n_hidden, "cell")
        );
        canvas.labeled("", &tip, |canvas| {
            canvas.line((place(c.between.0), y), (place(c.between.1), y), Stroke::new(color, 1.6));
            canvas.mark((place(c.coverage), y), if off(&c) { 3 } else { 0 }, 3.8, color, false);
        });
    }
    let text = shorten(&format!("proportion covered by {level} intervals"), LABEL, area.w + names_room);
    let wide = crate::text::width(&text, LABEL, crate::text::Weight::Regular);
    let middle = (area.x + 0.5 * area.w).max(body.x + 0.5 * wide);
    canvas.text((middle, area.bottom() + 32.0), &text, Font { anchor: Anchor::Middle, ..Font::default() });
    sheet.finish()
}
