//! Loadings as squares: area by size, color by sign.

use super::{communalities, component_word, conditions, largest, some_components, standardized_loadings};
use crate::layout::{Entry, LABEL, Look, Sheet, Words, legend, names_width};
use crate::scale::{count, number, percent};
use crate::svg::{Anchor, Font, Rect, Stroke};
use crate::text::{Weight, in_tip, name_lines, width};
use crate::{Error, Style, Svg};
use covary::learned::Learned;
use serde::{Deserialize, Serialize};

/// Columns drawn at most, and components.
const MOST_COLUMNS: usize = 40;
const MOST_COMPONENTS: usize = 24;

/// The numbers behind a Hinton diagram.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HintonNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// `component`, or `factor`.
    pub component_word: String,
    /// The rotation, if any.
    pub rotation: Option<String>,
    /// Columns drawn, in the order of the table.
    pub columns: Vec<String>,
    /// All columns of the model.
    pub n_columns: usize,
    /// Share of the variance that each component explains; none for factors and rotated components.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<Vec<f64>>,
    /// All components of the model.
    pub n_components: usize,
    /// Loadings in standard deviations of each column: a row for each of `columns`.
    pub loadings: Vec<Vec<f64>>,
}

/// Asks for them; of many columns, those that the components explain best.
///
/// # Errors
/// [`Error::NoComponents`] for a model without.
pub fn numbers(learned: &Learned) -> Result<HintonNumbers, Error> {
    let (loadings, _) = standardized_loadings(learned)?;
    let q = some_components(learned)?;
    let drawn = largest(&communalities(&loadings), MOST_COLUMNS);
    Ok(HintonNumbers {
        subject: conditions(learned),
        component_word: component_word(learned).to_owned(),
        rotation: learned.linear().ok().and_then(|fit| Some(fit.rotation.as_ref()?.name.clone())),
        columns: drawn.iter().map(|&j| learned.columns[j].clone()).collect(),
        n_columns: learned.columns.len(),
        n_components: q,
        shares: learned
            .linear()
            .ok()
            .filter(|fit| fit.rotation.is_none() && component_word(learned) == "component")
            .map(|fit| fit.model.explained_variance_ratio()),
        loadings: drawn.iter().map(|&j| loadings.row(j)[..q.min(MOST_COMPONENTS)].to_vec()).collect(),
    })
}

/// Draws them.
pub fn draw(numbers: &HintonNumbers, style: &Style) -> Svg {
    let n = numbers;
    let shown = n.loadings.first().map_or(0, Vec::len).max(1);
    let largest = n.loadings.iter().flatten().fold(0.0_f64, |m, v| m.max(v.abs())).max(1e-300);
    let word = &n.component_word;
    let rotated = n.rotation.as_ref().map_or(String::new(), |r| format!(", after {r} rotation"));
    let title = format!("Loadings of the columns on {word}s{rotated}");
    let mut note = vec![format!(
        "Area shows size; the largest square is {} standard deviations of its column.",
        number(largest, 2)
    )];
    if n.n_columns > n.columns.len() {
        note.push(format!(
            "Shown are the {} of {} columns that the {word}s explain best.",
            n.columns.len(),
            count(n.n_columns)
        ));
    }
    if n.n_components > shown {
        note.push(format!("The first {shown} of {} {word}s are shown.", n.n_components));
    }
    let row = (620.0 / n.columns.len().max(1) as f64).clamp(16.0, 27.0);
    let usual = (row * n.columns.len() as f64 + 52.0).max(120.0);
    let names = names_width(&n.columns, 230.0);
    let wide = (names + 60.0 + 74.0 * shown as f64).clamp(420.0, 900.0);
    let mut sheet = Sheet::new(
        style,
        (wide, usual),
        &Words { title: &title, subtitle: &n.subject, note: &note.join(" ") },
    );
    let (body, p) = (sheet.body, sheet.canvas.palette());
    let canvas = &mut sheet.canvas;
    let names = names.min(0.45 * body.w);
    legend(
        canvas,
        (body.x, body.y + 12.0),
        body.w,
        &[
            Entry { text: "positive", color: p.positive, look: Look::Box },
            Entry { text: "negative", color: p.negative, look: Look::Box },
        ],
    );
    let area = body.inside(names + 12.0, 44.0, 4.0, 4.0);
    let (step, line) = (area.w / shown as f64, area.h / n.columns.len().max(1) as f64);
    let side = step.min(line) * 0.94;
    let every = ((24.0 / step).ceil() as usize).max(1);
    let heading = |k: usize| match n.shares.as_ref().and_then(|s| s.get(k)) {
        Some(share) => format!("PC{} ({})", k + 1, percent(*share)),
        None => format!("{word} {}", k + 1),
    };
    // All headings whole, or all of them numbers.
    let whole = every == 1 && (0..shown).all(|k| width(&heading(k), LABEL, Weight::Regular) < step - 4.0);
    for k in (0..shown).step_by(every) {
        let at = (area.x + (k as f64 + 0.5) * step, area.y - 8.0);
        let text = if whole { heading(k) } else { (k + 1).to_string() };
        canvas.text(at, &text, Font::label(p.muted, Anchor::Middle));
    }
    let shown_names = name_lines(&n.columns, LABEL, names, if line >= 25.0 { 2 } else { 1 });
    for (j, (name, row)) in n.columns.iter().zip(&n.loadings).enumerate() {
        let y = area.y + (j as f64 + 0.5) * line;
        canvas.line((area.x, y), (area.right(), y), Stroke::new(p.grid, 1.0));
        canvas.name((area.x - 8.0, y), name, &shown_names[j], Font::label(p.ink, Anchor::End));
        for (k, &value) in row.iter().enumerate() {
            let s = side * (value.abs() / largest).sqrt();
            let x = area.x + (k as f64 + 0.5) * step;
            let (color, sign) = if value < 0.0 { (p.negative, "negative") } else { (p.positive, "positive") };
            if s >= 0.05 {
                let tip = format!("{} on {word} {}: {}", in_tip(name), k + 1, number(value, 3));
                canvas.labeled(sign, &tip, |canvas| {
                    canvas.rect(Rect { x: x - 0.5 * s, y: y - 0.5 * s, w: s, h: s }, color);
                });
            }
        }
    }
    sheet.finish()
}
