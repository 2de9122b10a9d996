//! What each component explains of each view, and which views share it.

use super::{conditions, some_components};
use crate::layout::{Entry, LABEL, Look, Sheet, Words, legend, names_width};
use crate::scale::{percent, several};
use crate::svg::{Anchor, Font, Rect, Stroke};
use crate::text::{in_tip, name_lines};
use crate::{Error, Style, Svg};
use covary::family::Family;
use covary::learned::Learned;
use serde::{Deserialize, Serialize};

/// Components drawn at most.
const MOST_COMPONENTS: usize = 16;

/// The numbers behind a figure of views.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ViewsNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// Names of the views.
    pub views: Vec<String>,
    /// Columns of each.
    pub n_columns: Vec<usize>,
    /// All components; of canonical correlation those that are shared.
    pub n_components: usize,
    /// Whether shares are of standardized columns.
    pub standardized: bool,
    /// Share of a view's variance that each component explains: a row for each view.
    pub shares: Vec<Vec<f64>>,
    /// Whether each component is active in a view.
    pub active: Vec<Vec<bool>>,
    /// Canonical correlations, of two views.
    pub correlations: Option<Vec<f64>>,
}

/// Asks for them.
///
/// # Errors
/// [`Error::NoViews`] for a model of one table, [`Error::NoComponents`] for one without.
pub fn numbers(learned: &Learned) -> Result<ViewsNumbers, Error> {
    let linear = learned.linear()?;
    let found = learned.activity()?.ok_or(Error::NoViews)?;
    let q = some_components(learned)?;
    let shown = q.min(MOST_COMPONENTS);
    let views = 0..linear.views.len();
    Ok(ViewsNumbers {
        subject: conditions(learned),
        views: linear.views.clone(),
        n_columns: linear.spec.views.clone(),
        n_components: q,
        standardized: linear.spec.standardize,
        shares: views.clone().map(|v| found.explained_variance.row(v)[..shown].to_vec()).collect(),
        active: views.map(|v| (0..shown).map(|i| found.is_active(v, i)).collect()).collect(),
        correlations: if learned.family == Family::Pcca {
            learned.canonical()?.map(|found| found.correlations().to_vec())
        } else {
            None
        },
    })
}

/// Draws them.
pub fn draw(numbers: &ViewsNumbers, style: &Style) -> Svg {
    let n = numbers;
    let shown = n.shares.first().map_or(0, Vec::len).max(1);
    let is_shared = |i: usize| n.active.iter().filter(|view| view[i]).count() > 1;
    let shared = (0..n.shares.first().map_or(0, Vec::len)).filter(|&i| is_shared(i)).count();
    let title = match (&n.correlations, n.n_components > shown) {
        (Some(_), _) => format!("The views share {}", several(n.n_components, "component")),
        (None, true) => "What each component explains of each view".to_owned(),
        (None, false) => {
            format!("{} shared by views, {} private to one", several(shared, "component"), shown - shared)
        }
    };
    let standardized = if n.standardized { " of standardized columns" } else { "" };
    let mut note =
        vec![format!("Area and number: proportion of the view's variance{standardized}, in per cent.")];
    if n.active.iter().flatten().any(|active| !active) {
        note.push("–: not active in the view.".to_owned());
    }
    if n.correlations.is_some() {
        note.push("ρ: canonical correlation.".to_owned());
    }
    if n.n_components > shown {
        note.push(format!("The first {shown} of {} components are shown.", n.n_components));
    }
    let labels: Vec<String> = n
        .views
        .iter()
        .zip(&n.n_columns)
        .map(|(name, d)| format!("{name} ({})", several(*d, "column")))
        .collect();
    let names = names_width(&labels, 230.0);
    let header = if n.correlations.is_some() { 62.0 } else { 46.0 };
    let usual = (
        (names + 60.0 + 84.0 * shown as f64).clamp(420.0, 960.0),
        header + 10.0 + 68.0 * n.views.len() as f64,
    );
    let mut sheet =
        Sheet::new(style, usual, &Words { title: &title, subtitle: &n.subject, note: &note.join(" ") });
    let (body, p) = (sheet.body, sheet.canvas.palette());
    let canvas = &mut sheet.canvas;
    let names = names.min(0.45 * body.w);
    if n.correlations.is_none() {
        legend(
            canvas,
            (body.x, body.y + 12.0),
            body.w,
            &[
                Entry { text: "shared", color: p.main, look: Look::Box },
                Entry { text: "private", color: p.second, look: Look::Box },
            ],
        );
    }
    let area = body.inside(names + 12.0, header, 4.0, 4.0);
    // Numbers beside each other need this much room; where it is less, they have no sign of per cent and no decimal.
    let tight = area.w / (shown as f64) < 46.0;
    let short = |share: f64| if tight { format!("{:.0}", 100.0 * share) } else { percent(share) };
    if tight && n.correlations.is_some() {
        canvas.text((area.x - 8.0, area.y - 8.0), "ρ", Font::label(p.ink, Anchor::End));
    }
    let (step, line) = (area.w / shown as f64, area.h / n.views.len().max(1) as f64);
    let side = step.min(line - 20.0).max(4.0) * 0.9;
    let largest = n.shares.iter().flatten().fold(0.0_f64, |m, v| m.max(*v)).max(1e-300);
    for i in 0..shown {
        let x = area.x + (i as f64 + 0.5) * step;
        let text = if i == 0 && step > 76.0 { "component 1".to_owned() } else { (i + 1).to_string() };
        let rho = n.correlations.as_ref().and_then(|r| r.get(i));
        let above = if rho.is_some() { 24.0 } else { 8.0 };
        canvas.text((x, area.y - above), &text, Font::label(p.muted, Anchor::Middle));
        if let Some(rho) = rho {
            let text = if tight { format!("{rho:.2}") } else { format!("ρ = {rho:.2}") };
            canvas.text((x, area.y - 8.0), &text, Font::label(p.ink, Anchor::Middle));
        }
    }
    let shown_names = name_lines(&labels, LABEL, names, 2);
    for (v, label) in labels.iter().enumerate() {
        let (top, middle) = (area.y + v as f64 * line, area.y + (v as f64 + 0.5) * line);
        canvas.line((area.x, top), (area.right(), top), Stroke::new(p.grid, 1.0));
        canvas.name((area.x - 8.0, middle), label, &shown_names[v], Font::label(p.ink, Anchor::End));
        for (i, (&share, &active)) in n.shares[v].iter().zip(&n.active[v]).enumerate() {
            let x = area.x + (i as f64 + 0.5) * step;
            if !active {
                canvas.text((x, middle), "–", Font::label(p.muted, Anchor::Middle));
                continue;
            }
            let s = side * (share / largest).sqrt();
            let color = if n.correlations.is_some() || is_shared(i) { p.main } else { p.second };
            let series = if is_shared(i) { "shared" } else { "private" };
            let tip = format!("component {}: {} of {}", i + 1, percent(share), in_tip(&n.views[v]));
            let center = top + 0.5 * (line - 16.0);
            canvas.labeled(series, &tip, |canvas| {
                canvas.rect(Rect { x: x - 0.5 * s, y: center - 0.5 * s, w: s, h: s }, color);
            });
            let below = (center + 0.5 * s + 13.0).min(top + line - 3.0);
            canvas.text((x, below), &short(share), Font::label(p.muted, Anchor::Middle));
        }
    }
    sheet.finish()
}
