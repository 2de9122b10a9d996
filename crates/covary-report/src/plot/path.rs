//! Sparse loadings along the path of penalties, and which of them the model keeps.

use super::conditions;
use crate::layout::{Axis, LABEL, NARROW, Panel, Sheet, Words, names_width, room, spread};
use crate::scale::{Scale, Tick, number, several};
use crate::svg::{Anchor, Font, Rect, Stroke};
use crate::text::shortened;
use crate::{Error, Style, Svg};
use covary::learned::Learned;
use covary::{Dataset, Method};
use serde::{Deserialize, Serialize};

/// Components drawn at most.
const MOST_COMPONENTS: usize = 4;

/// A loading along the path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trail {
    /// Its column.
    pub column: String,
    /// In standard deviations of the column, for each penalty.
    pub loadings: Vec<f64>,
    /// Whether the model keeps it.
    pub kept: bool,
}

/// The numbers behind a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// Penalties, ascending.
    pub penalties: Vec<f64>,
    /// Extended BIC of the likelihood on the support at each penalty.
    pub criterion: Vec<f64>,
    /// Components of the model.
    pub n_components: usize,
    /// For each component drawn the loadings that are on its path somewhere.
    pub components: Vec<Vec<Trail>>,
}

/// Walks along the path again, by the method and the table that the model is from.
///
/// # Errors
/// [`Error::NoPath`] unless the model has sparse loadings, [`Error::NoComponents`], and as
/// [`SparseEm::path`](covary::infer::SparseEm::path).
pub fn numbers(learned: &Learned, data: &Dataset) -> Result<PathNumbers, Error> {
    let linear = learned.linear()?;
    let Ok(Method::SparseEm(method)) = learned.method.to_method() else { return Err(Error::NoPath) };
    let path = method.path(data, &linear.spec)?;
    let model = linear.model.loadings();
    let q = super::some_components(learned)?;
    let sds = &learned.training.column_sds;
    let criterion: Vec<f64> = path.iter().map(|p| p.criterion).collect();
    let Some(least) = (0..path.len()).min_by(|&a, &b| criterion[a].total_cmp(&criterion[b])) else {
        return Err(Error::NoComponents);
    };
    // The model has components in the order of their strength, the path in that of its start.
    let cosine = |k: usize, l: usize| {
        let (mut both, mut own, mut other) = (0.0_f64, 0.0_f64, 0.0_f64);
        for (j, sd) in sds.iter().enumerate() {
            let (a, b) = (model[(j, k)] / sd, path[least].loadings[(j, l)] / sd);
            (both, own, other) = (both + a * b, own + a * a, other + b * b);
        }
        if own * other > 0.0 { both / (own * other).sqrt() } else { 0.0 }
    };
    let trails = |k: usize| {
        let width = path[least].loadings.n_columns();
        let nearest = (0..width).max_by(|&a, &b| cosine(k, a).abs().total_cmp(&cosine(k, b).abs()));
        let l = nearest.unwrap_or(0);
        let sign = if cosine(k, l) < 0.0 { -1.0 } else { 1.0 };
        let of = |j: usize| Trail {
            column: learned.columns[j].clone(),
            loadings: path.iter().map(|p| sign * p.loadings[(j, l)] / sds[j]).collect(),
            kept: model[(j, k)] != 0.0,
        };
        let on_path = |trail: &Trail| trail.kept || trail.loadings.iter().any(|w| *w != 0.0);
        (0..sds.len()).map(of).filter(on_path).collect()
    };
    Ok(PathNumbers {
        subject: conditions(learned),
        penalties: path.iter().map(|p| p.penalty).collect(),
        criterion,
        n_components: q,
        components: (0..q.min(MOST_COMPONENTS)).map(trails).collect(),
    })
}

/// Draws them: a panel for each component, penalties falling to the right.
pub fn draw(numbers: &PathNumbers, style: &Style) -> Svg {
    let n = numbers;
    let kept: usize = n.components.iter().flatten().filter(|t| t.kept).count();
    let shown = n.components.len();
    let of = if shown < n.n_components { format!("the first {shown}") } else { several(shown, "component") };
    let title = format!("{} of {of} along the penalty", several(kept, "loading"));
    let mut note = vec![
        "Loadings in standard deviations of their columns. Those with a name are in the model; pale ones are 0 there."
            .to_owned(),
        "Dashed: the penalty whose support has the smallest extended BIC, of which the weakest loadings may have been dropped."
            .to_owned(),
    ];
    if shown < n.n_components {
        note.push(format!("{shown} of {} components are shown.", n.n_components));
    }
    let named: Vec<String> =
        n.components.iter().flatten().filter(|t| t.kept).map(|t| t.column.clone()).collect();
    let names = names_width(&named, 130.0);
    let panels = shown.max(1);
    let wide = ((230.0 + names) * panels as f64 + 40.0).clamp(460.0, 1280.0);
    // Panels stand below each other where there is no room for them side by side.
    let stacked = room(style, wide) < NARROW;
    let tall = if stacked { 230.0 * panels as f64 } else { 330.0 };
    let mut sheet = Sheet::new(
        style,
        (wide, tall),
        &Words { title: &title, subtitle: &n.subject, note: &note.join(" ") },
    );
    let (body, p) = (sheet.body, sheet.canvas.palette());
    let canvas = &mut sheet.canvas;
    let last = n.penalties.len().saturating_sub(1);
    let least = (0..n.criterion.len()).min_by(|&a, &b| n.criterion[a].total_cmp(&n.criterion[b]));
    let all = n.components.iter().flatten().flat_map(|t| t.loadings.iter().copied());
    let scale = Scale::over(all.chain([0.0]), true);
    let ticks = ticks(&n.penalties);
    for (k, trails) in n.components.iter().enumerate() {
        let outer = if stacked { body.row(k, panels, 6.0) } else { body.column(k, panels, 18.0) };
        let names = names.min(0.35 * outer.w);
        let mut x = Axis::new(Scale::Linear { from: last.max(1) as f64, to: 0.0 }, "penalty λ (log scale)");
        x.ticks = Some(ticks.clone());
        let y = Axis::new(scale, format!("component {}", k + 1));
        let panel = Panel::new(canvas, Rect { w: outer.w - names - 10.0, ..outer }, &x, &y);
        let zero = panel.py(0.0);
        canvas.line((panel.area.x, zero), (panel.area.right(), zero), Stroke::new(p.axis, 1.0));
        if let Some(at) = least {
            let x = panel.px(at as f64);
            let line = Stroke::new(p.second, 1.4).dashed(4.0);
            canvas.line((x, panel.area.y), (x, panel.area.bottom()), line);
        }
        let color = |trail: &Trail, at: usize| if trail.kept { p.group(at) } else { p.soft };
        // Pale lines first, so that they cross none of the others.
        for kept in [false, true] {
            for (at, trail) in trails.iter().filter(|t| t.kept == kept).enumerate() {
                let points: Vec<(f64, f64)> =
                    trail.loadings.iter().enumerate().map(|(i, w)| panel.at((i as f64, *w))).collect();
                let tip = format!("{}: {}", trail.column, number(trail.loadings[0], 2));
                let stroke = Stroke::new(color(trail, at), if kept { 2.0 } else { 1.2 });
                canvas.labeled("", &tip, |canvas| canvas.polyline(points.iter().copied(), stroke));
            }
        }
        let kept: Vec<&Trail> = trails.iter().filter(|t| t.kept).collect();
        let ends: Vec<f64> = kept.iter().map(|t| panel.py(t.loadings[0])).collect();
        let places = spread(&ends, 13.0, panel.area.y, panel.area.bottom());
        let columns: Vec<String> = kept.iter().map(|t| t.column.clone()).collect();
        let columns = shortened(&columns, LABEL, names);
        for (at, (trail, y)) in kept.iter().zip(places).enumerate() {
            let font = Font::label(color(trail, at), Anchor::Start);
            canvas.text((panel.area.right() + 6.0, y + 4.0), &columns[at], font);
        }
    }
    sheet.finish()
}

/// Round penalties at their places between those of the path, whose ratios are even.
fn ticks(penalties: &[f64]) -> Vec<Tick> {
    let (Some(&low), Some(&high)) = (penalties.first(), penalties.last()) else { return Vec::new() };
    if penalties.len() < 2 || low <= 0.0 {
        return Vec::new();
    }
    let last = (penalties.len() - 1) as f64;
    let place = |v: f64| last * (v / low).ln() / (high / low).ln();
    let decades = low.log10().floor() as i32..=high.log10().ceil() as i32;
    let round = |factors: &'static [f64]| {
        decades.clone().flat_map(move |e| factors.iter().map(move |f| f * 10f64.powi(e)))
    };
    let factors: &[f64] = if high / low > 20.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let inside = round(factors).filter(|v| (low..=high).contains(v));
    let mut ticks: Vec<Tick> =
        inside.map(|value| Tick { value: place(value), text: number(value, 1) }).collect();
    // From left to right, as labels are given room.
    ticks.reverse();
    ticks
}
