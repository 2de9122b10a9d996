//! Every criterion over the number of components.

use crate::layout::{Axis, LABEL, NARROW, Panel, Sheet, Words, room, spread};
use crate::scale::{Scale, number, several};
use crate::svg::{Anchor, Font, Rect, Stroke};
use crate::text::{Weight, shorten, width};
use crate::{Style, Svg};
use covary::Dataset;
use covary::learned::Learned;
use covary::select::{Comparison, HeldOutAt, Score};
use serde::{Deserialize, Serialize};

/// A criterion over q, turned so that more is better and 0 is its best.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// What it is.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// For each number of components from 0: how much less than the best; none where it is not known.
    pub below_best: Vec<Option<f64>>,
    /// Its standard error, where it has one.
    pub error: Option<Vec<Option<f64>>>,
    /// The number of components where it is best.
    pub best: Option<usize>,
}

/// What a criterion would take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The criterion.
    pub name: String,
    /// Components.
    pub n_components: usize,
}

/// The numbers behind a comparison of numbers of components.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SelectNumbers {
    /// The table.
    pub subject: String,
    /// Most components tried.
    pub most: usize,
    /// The recommendation, and whose it is.
    pub recommended: usize,
    /// The criterion that recommends.
    pub by: String,
    /// The criteria that are curves.
    pub curves: Vec<Curve>,
    /// What every criterion would take.
    pub choices: Vec<Choice>,
}

/// Arranges a comparison.
pub fn numbers(data: &Dataset, found: &Comparison) -> SelectNumbers {
    let at = &found.by_n_components;
    let curve = |name: &str, unit: &str, values: Vec<Option<f64>>, error: Option<Vec<Option<f64>>>| {
        let best = values.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        Curve {
            name: name.to_owned(),
            unit: unit.to_owned(),
            best: values.iter().position(|v| *v == Some(best)),
            below_best: values.iter().map(|v| v.map(|v| v - best)).collect(),
            error,
        }
    };
    let held = |of: fn(&HeldOutAt) -> f64| at.iter().map(|a| a.held_out.as_ref().map(of)).collect::<Vec<_>>();
    // AIC and BIC are minus twice a log-likelihood: halved and turned they are in nats like the others.
    let half = |v: Option<f64>| v.map(|v| -0.5 * v);
    let mut curves = vec![
        curve("held-out cells", unit(found.score), held(|h| -h.shortfall), Some(held(|h| h.shortfall_error))),
        curve("BIC", "nats", at.iter().map(|a| half(a.bic)).collect(), None),
        curve("AIC", "nats", at.iter().map(|a| half(a.aic)).collect(), None),
        curve("Minka's evidence", "nats", at.iter().map(|a| a.log_evidence).collect(), None),
        curve("variational bound", "nats", at.iter().map(|a| a.lower_bound).collect(), None),
        curve(
            "p(q | data)",
            "log probability",
            at.iter().map(|a| a.probability.filter(|p| *p > 0.0).map(f64::ln)).collect(),
            None,
        ),
    ];
    curves.retain(|c| c.below_best.iter().any(Option::is_some));
    let gaps = if data.is_complete() {
        "no missing values".to_owned()
    } else {
        format!(
            "{} missing",
            crate::scale::percent(data.n_gaps() as f64 / (data.n_rows() * data.n_columns()) as f64)
        )
    };
    SelectNumbers {
        subject: format!(
            "probabilistic PCA; {} of {}, {gaps}",
            several(data.n_rows(), "row"),
            several(data.n_columns(), "column")
        ),
        most: at.len().saturating_sub(1),
        recommended: found.recommended,
        by: found.by.words().to_owned(),
        curves,
        choices: found
            .choices
            .iter()
            .map(|(c, q)| Choice { name: c.words().to_owned(), n_components: *q })
            .collect(),
    }
}

/// The scores that chose a model's number of components, beside the number that stands above shuffled
/// columns, if that is known; none if no scores chose it.
pub fn of_choice(learned: &Learned, above_shuffled: Option<usize>) -> Option<SelectNumbers> {
    let linear = learned.linear().ok()?;
    let choice = linear.choice.as_ref()?;
    let most = choice.by_n_components.last().map_or(0, |a| a.n_components);
    let each = |of: fn(&HeldOutAt) -> f64| (0..=most).map(|q| choice.at(q).map(of)).collect::<Vec<_>>();
    let best = choice.by_n_components.iter().find(|a| a.shortfall == 0.0).map(|a| a.n_components);
    let recommended = linear.model.n_components();
    let mut choices = vec![Choice { name: "held-out cells".to_owned(), n_components: recommended }];
    choices.extend(
        best.map(|n_components| Choice { name: "held-out cells, the best".to_owned(), n_components }),
    );
    choices.extend(
        above_shuffled.map(|n_components| Choice { name: "parallel analysis".to_owned(), n_components }),
    );
    Some(SelectNumbers {
        subject: super::conditions(learned),
        most,
        recommended,
        by: "held-out cells".to_owned(),
        curves: vec![Curve {
            name: "held-out cells".to_owned(),
            unit: unit(choice.score).to_owned(),
            below_best: each(|a| -a.shortfall),
            error: Some(each(|a| a.shortfall_error)),
            best,
        }],
        choices,
    })
}

/// What predictions of hidden cells are counted in.
fn unit(score: Score) -> &'static str {
    match score {
        Score::LogDensity => "nats per hidden cell",
        Score::Crps => "CRPS",
    }
}

/// The points of a curve that lie below its panel, and the least of them.
fn below_panel(curve: &Curve, floor: f64) -> String {
    let cut: Vec<(usize, f64)> = curve
        .below_best
        .iter()
        .enumerate()
        .filter_map(|(q, v)| Some((q, (*v)?)))
        .filter(|(_, v)| *v < floor)
        .collect();
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &(q, _) in &cut {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == q => *last = q,
            _ => runs.push((q, q)),
        }
    }
    let word = |(a, b): &(usize, usize)| if a == b { a.to_string() } else { format!("{a} to {b}") };
    let places = runs.iter().map(word).collect::<Vec<_>>().join(", ");
    match cut.iter().min_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((q, v)) if cut.len() > 1 => format!("below: {places} ({} at {q})", number(*v, 3)),
        Some((q, v)) => format!("below: {} at {q}", number(*v, 3)),
        None => String::new(),
    }
}

/// Draws them: a panel per criterion, and below what each would take.
pub fn draw(numbers: &SelectNumbers, style: &Style) -> Svg {
    let n = numbers;
    let (least, greatest) = n
        .choices
        .iter()
        .fold((n.recommended, n.recommended), |(a, b), c| (a.min(c.n_components), b.max(c.n_components)));
    let title = if least == greatest {
        format!("All criteria choose {}", several(n.recommended, "component"))
    } else {
        format!(
            "{} recommended, by {}; criteria range from {least} to {greatest}",
            several(n.recommended, "component"),
            n.by
        )
    };
    let in_nats = n.curves.iter().all(|curve| curve.unit != unit(Score::Crps));
    let note = format!(
        "Each curve is a criterion relative to its best, in {}; higher is better. Filled: the best. Bars: one standard error of the difference. The shaded column is the recommendation.",
        if in_nats { "nats" } else { "its own units" }
    ) + if n.curves.iter().any(|curve| curve.name == "BIC") {
        " BIC and AIC are halved and turned, as log-likelihoods are."
    } else {
        ""
    };
    let n_panels = n.curves.len().max(1);
    let across = match room(style, 860.0) {
        narrow if narrow < NARROW => 1,
        _ if n_panels == 4 => 2,
        _ => n_panels.min(3),
    };
    let down = n_panels.div_ceil(across);
    let strip = 24.0 * n.choices.len() as f64 + 62.0;
    let tall = 190.0 * down as f64 + strip;
    let mut sheet =
        Sheet::new(style, (860.0, tall), &Words { title: &title, subtitle: &n.subject, note: &note });
    let (body, p) = (sheet.body, sheet.canvas.palette());
    let canvas = &mut sheet.canvas;
    let strip = strip.min(0.5 * body.h);
    let upper = Rect { h: body.h - strip - 14.0, ..body };
    let x_axis = |room: f64| Axis::whole(0, n.most.max(1), room, "components");
    for (k, curve) in n.curves.iter().enumerate() {
        let outer = upper.row(k / across, down, 12.0).column(k % across, across, 22.0);
        let values: Vec<f64> = curve.below_best.iter().flatten().copied().collect();
        let error = |q: usize| curve.error.as_ref().and_then(|e| e[q]).unwrap_or(0.0);
        // A start far below would flatten the rest: the panel shows the upper part, four times the middle.
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.get(sorted.len() / 2).copied().unwrap_or(-1.0);
        let floor = (4.0 * middle).min(-1e-9);
        let cut = sorted.first().is_some_and(|v| *v < 1.5 * floor);
        let low = if cut { floor } else { sorted.first().copied().unwrap_or(-1.0) };
        let top = 0.06 * -low;
        let y = Axis::new(
            Scale::over([low, top.max(error(curve.best.unwrap_or(0)))], false),
            format!("{} ({} below best)", curve.name, curve.unit),
        );
        let panel = Panel::new(canvas, outer, &x_axis(outer.w), &y);
        let (x0, x1) = (panel.px(n.recommended as f64 - 0.4), panel.px(n.recommended as f64 + 0.4));
        canvas
            .rect(Rect { x: x0, y: panel.area.y, w: x1 - x0, h: panel.area.h }, p.paper.towards(p.soft, 0.5));
        canvas.clipped(Rect { y: panel.area.y - 6.0, h: panel.area.h + 6.0, ..panel.area }, |canvas| {
            let points =
                curve.below_best.iter().enumerate().map(|(q, v)| panel.at((q as f64, v.unwrap_or(f64::NAN))));
            // Numbers that were passed over are no break.
            canvas.polyline(points.clone().filter(|at| at.1.is_finite()), Stroke::new(p.main, 1.6));
            for (q, at) in points.enumerate().filter(|(_, at)| at.1.is_finite()) {
                let v = curve.below_best[q].unwrap_or(0.0);
                if error(q) > 0.0 {
                    canvas.line(
                        panel.at((q as f64, v - error(q))),
                        panel.at((q as f64, v + error(q))),
                        Stroke::new(p.main, 1.1),
                    );
                }
                let best = curve.best == Some(q);
                let tip = format!("{}: {} below the best", several(q, "component"), number(-v, 3));
                canvas.labeled("", &tip, |canvas| {
                    canvas.mark(at, 0, if best { 4.2 } else { 2.8 }, p.main, !best);
                });
            }
        });
        if cut {
            let text = below_panel(curve, panel.y.ends().0);
            let text = shorten(&text, LABEL, panel.area.w - 8.0);
            let middle = 0.5 * n.most as f64;
            // Where the curve is not: under the half whose values are higher.
            let mean = |of: &dyn Fn(usize) -> bool| {
                let own: Vec<f64> = curve
                    .below_best
                    .iter()
                    .enumerate()
                    .filter(|(q, _)| of(*q))
                    .filter_map(|(_, v)| *v)
                    .collect();
                own.iter().sum::<f64>() / own.len().max(1) as f64
            };
            let right = mean(&|q| q as f64 > middle) >= mean(&|q| (q as f64) < middle);
            let (x, anchor) = if right {
                (panel.area.right() - 4.0, Anchor::End)
            } else {
                (panel.area.x + 4.0, Anchor::Start)
            };
            canvas.text((x, panel.area.bottom() - 6.0), &text, Font::label(p.muted, anchor));
        }
    }

    let lower = Rect { y: body.bottom() - strip, h: strip, ..body };
    canvas.text((lower.x, lower.y + 11.0), "number chosen by each criterion", Font::default());
    let names = n
        .choices
        .iter()
        .map(|c| width(&c.name, LABEL, Weight::Regular))
        .fold(0.0, f64::max)
        .min(0.35 * body.w);
    let area = lower.inside(names + 14.0, 22.0, 14.0, 40.0);
    let most = greatest.max(n.most);
    let axis = Axis::whole(0, most.max(1), area.w, "");
    let place = |q: usize| area.x + area.w * axis.scale.place(q as f64);
    let (x0, x1) = (place(n.recommended) - 11.0, place(n.recommended) + 11.0);
    canvas.rect(Rect { x: x0, y: area.y, w: x1 - x0, h: area.h }, p.paper.towards(p.soft, 0.5));
    let lines: Vec<f64> = (0..n.choices.len())
        .map(|k| area.y + (k as f64 + 0.5) * area.h / n.choices.len().max(1) as f64)
        .collect();
    for (choice, y) in n.choices.iter().zip(spread(&lines, 10.0, area.y, area.bottom())) {
        canvas.line((area.x, y), (area.right(), y), Stroke::new(p.grid, 1.0));
        canvas.text(
            (area.x - 8.0, y + 4.0),
            &shorten(&choice.name, LABEL, names),
            Font::label(p.ink, Anchor::End),
        );
        let agrees = choice.n_components == n.recommended;
        canvas.mark((place(choice.n_components), y), 0, 4.6, if agrees { p.main } else { p.second }, !agrees);
    }
    for tick in axis.ticks.unwrap_or_default() {
        let x = area.x + area.w * axis.scale.place(tick.value);
        canvas.text((x, area.bottom() + 15.0), &tick.text, Font::label(p.muted, Anchor::Middle));
    }
    canvas.text(
        (area.x + 0.5 * area.w, area.bottom() + 32.0),
        "components",
        Font { anchor: Anchor::Middle, ..Font::default() },
    );
    sheet.finish()
}
