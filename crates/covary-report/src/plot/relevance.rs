//! Which components a prior kept, and how clear that was.

use super::conditions;
use crate::layout::{Axis, LABEL, Panel, Sheet, Words};
use crate::scale::{Scale, Tick, number, several};
use crate::svg::{Anchor, Font, Stroke};
use crate::text::Weight;
use crate::{Error, Style, Svg};
use covary::learned::Learned;
use serde::{Deserialize, Serialize};

/// The numbers behind a plot of relevances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RelevanceNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// The method.
    pub method: String,
    /// α of each component in the model, in ascending order: the smaller, the more it counts.
    pub alpha: Vec<f64>,
    /// Components that were offered; those beyond `alpha` were dropped.
    pub n_offered: usize,
    /// Components before the widest gap, and the ratio across it; none if nothing separates.
    pub gap: Option<(usize, f64)>,
}

/// Asks for them.
///
/// # Errors
/// [`Error::NoRelevance`] if the model has no such prior.
pub fn numbers(learned: &Learned) -> Result<RelevanceNumbers, Error> {
    let linear = learned.linear()?;
    if !linear.views.is_empty() {
        return Err(Error::OfViews { kind: "relevance" });
    }
    let mut alpha = linear.report.relevance.clone();
    if alpha.is_empty() {
        return Err(Error::NoRelevance);
    }
    alpha.sort_by(f64::total_cmp);
    let ratios = alpha.windows(2).enumerate().map(|(k, w)| (k + 1, w[1] / w[0]));
    let widest = ratios.filter(|(_, r)| r.is_finite()).max_by(|a, b| a.1.total_cmp(&b.1));
    Ok(RelevanceNumbers {
        subject: conditions(learned),
        method: learned.method.name.clone(),
        n_offered: linear.spec.n_components.max(alpha.len()),
        alpha,
        gap: widest.filter(|(_, ratio)| *ratio > 10.0),
    })
}

/// Draws them on a logarithmic axis; components that were dropped stand at its upper edge.
pub fn draw(numbers: &RelevanceNumbers, style: &Style) -> Svg {
    let n = numbers;
    let kept = n.alpha.len();
    let dropped = n.n_offered - kept;
    let title = match (n.gap, dropped) {
        (Some((k, ratio)), 0) => {
            format!("A factor of {} separates {} from the rest", number(ratio, 2), several(k, "component"))
        }
        (_, 0) => format!("All {} are kept", several(kept, "component")),
        _ => format!("{kept} of {} are kept", several(n.n_offered, "component")),
    };
    let mut note = vec!["α is the precision of a component's loadings under its prior: the larger, the less the component is needed.".to_owned()];
    if dropped > 0 {
        note.push("Components that were dropped had an α without bound: ∞.".to_owned());
    }
    let subtitle = format!("{}; method {}", n.subject, n.method);
    let mut sheet = Sheet::new(
        style,
        (640.0, 320.0),
        &Words { title: &title, subtitle: &subtitle, note: &note.join(" ") },
    );
    let (body, p) = (sheet.body, sheet.canvas.palette());
    let canvas = &mut sheet.canvas;
    let mut y = Axis::new(Scale::log_over(n.alpha.iter().copied()), "relevance α (log scale)");
    let (from, to) = y.scale.ends();
    if dropped > 0 {
        // A line of its own above all numbers, for those that have none.
        let mut ticks = y.scale.ticks(6);
        y.scale = Scale::Log { from, to: 10.0 * to };
        ticks.push(Tick { value: 10.0 * to, text: "∞".to_owned() });
        y.ticks = Some(ticks);
    }
    let x = Axis::whole(1, n.n_offered.max(1), body.w, "component, in order of decreasing variance");
    let panel = Panel::new(canvas, body, &x, &y);
    if dropped > 0 {
        for k in kept..n.n_offered {
            canvas.mark(panel.at((k as f64 + 1.0, 10.0 * to)), 0, 4.0, p.axis, true);
        }
        let x = panel.px(kept as f64 + 0.5);
        canvas.line(
            (x, panel.area.y - 6.0),
            (x, panel.area.bottom()),
            Stroke::new(p.second, 1.4).dashed(4.0),
        );
        let font = Font { halo: true, ..Font::label(p.second, Anchor::Start) };
        canvas.text((x + 7.0, panel.area.y + 20.0), &format!("{dropped} dropped"), font);
        let font = Font { halo: true, ..Font::label(p.main, Anchor::End) };
        canvas.text((x - 7.0, panel.area.bottom() - 8.0), &format!("{kept} kept"), font);
    }
    let points: Vec<(f64, f64)> =
        n.alpha.iter().enumerate().map(|(k, a)| panel.at((k as f64 + 1.0, *a))).collect();
    canvas.polyline(points.iter().copied(), Stroke::new(p.soft, 1.5));
    for (k, at) in points.iter().enumerate() {
        let tip = format!("component {}: α {}", k + 1, number(n.alpha[k], 3));
        canvas.labeled("", &tip, |canvas| canvas.mark(*at, 0, 4.4, p.main, false));
    }
    if let Some((k, ratio)) = n.gap {
        let (x, low, high) = (panel.px(k as f64 + 0.5), n.alpha[k - 1], n.alpha[k]);
        let (from, to) = (panel.py(low), panel.py(high));
        canvas.line((x, from), (x, to), Stroke::new(p.second, 1.6));
        for y in [from, to] {
            canvas.line((x - 4.0, y), (x + 4.0, y), Stroke::new(p.second, 1.6));
        }
        let font =
            Font { halo: true, size: LABEL, weight: Weight::Bold, ..Font::label(p.second, Anchor::End) };
        canvas.text((x - 8.0, 0.5 * (from + to) + 4.0), &format!("× {}", number(ratio, 2)), font);
    }
    sheet.finish()
}
