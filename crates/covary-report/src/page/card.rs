//! A model on a card: what a notebook shows of a fitted estimator.

use crate::plot::{eigenfunctions, fitted_to, hinton, scree, views};
use crate::scale::{number, percent};
use crate::text::clean;
use crate::words::{ending, objective};
use crate::{Style, Svg, Theme};
use covary::learned::Learned;
use maud::{PreEscaped, html as markup};

/// Components whose shares are listed.
const LISTED: usize = 8;

/// What was fitted to what and how it ended, with the figure that needs no table: variances, views, eigenfunctions or
/// loadings. A piece of a page, without scripts, that brings its colors with it.
pub fn card(learned: &Learned) -> String {
    let end = learned.ending();
    let mut facts = vec![
        ("model", learned.described().replace('`', "")),
        ("table", fitted_to(learned)),
        ("method", format!("{}, {}", learned.method.name, ending(&end))),
    ];
    if let Some(found) = end.objective {
        facts.push((objective(found.kind), format!("{} nats", number(found.value, 8))));
    }
    if let Some(shares) = shares(learned).filter(|shares| !shares.is_empty()) {
        let more = if shares.len() > LISTED { ", …" } else { "" };
        let each: Vec<String> = shares.iter().take(LISTED).map(|share| percent(*share)).collect();
        let sum = percent(shares.iter().sum());
        facts.push(("variance explained", format!("{sum}: {}{more}", each.join(", "))));
    }
    if let Some(check) = &learned.check {
        facts.push((
            "cross-validation",
            format!("{} of the variance of hidden cells predicted", percent(check.skill)),
        ));
    }
    facts.extend(end.warnings.iter().map(|warning| ("warning", warning.message.clone())));
    let drawn = drawn(learned);
    markup! {
        div style="display:flex;flex-wrap:wrap;gap:1rem;align-items:flex-start;background:#fff;color:#1b1f24;border:1px solid #d8dee4;border-radius:8px;padding:.7rem .9rem;max-width:62rem;font:13px/1.5 system-ui,sans-serif" {
            table style="border-collapse:collapse;margin:0;flex:1 1 20rem;color:inherit;background:none" {
                tbody { @for (what, value) in &facts { tr style="background:none" {
                    th scope="row" style="text-align:left;vertical-align:top;padding:.15rem .9rem .15rem 0;font-weight:600;white-space:nowrap" { (what) }
                    td style="text-align:left;padding:.15rem 0;overflow-wrap:anywhere" { (clean(value)) }
                } } }
            }
            @if let Some(svg) = &drawn { div style="flex:0 1 26rem" { (PreEscaped(svg.as_str())) } }
        }
    }
    .into_string()
}

/// The share of the variance of each component, where components divide it among them.
fn shares(learned: &Learned) -> Option<Vec<f64>> {
    if let Ok(fit) = learned.functional() {
        return Some(fit.explained_variance_ratio());
    }
    if learned.sources().is_ok() {
        return learned.source_variance_ratio().ok();
    }
    let linear = learned.linear().ok().filter(|fit| fit.rotation.is_none() && fit.views.is_empty())?;
    Some(linear.model.explained_variance_ratio())
}

fn drawn(learned: &Learned) -> Option<Svg> {
    let style = Style { theme: Theme::Light, width: Some(420.0), height: None };
    if let Ok(n) = eigenfunctions::numbers(learned) {
        return Some(eigenfunctions::draw(&n, &Style { width: Some(560.0), ..style }));
    }
    if let Ok(n) = views::numbers(learned) {
        return Some(views::draw(&n, &style));
    }
    if let Ok(n) = scree::numbers(learned, None) {
        return Some(scree::draw(&n, &Style { width: Some(520.0), ..style }));
    }
    hinton::numbers(learned).ok().map(|n| hinton::draw(&n, &style))
}
