//! The outlier map: how far each row is inside the plane of the components, and from it.

use super::{conditions, some_components};
use crate::layout::{Axis, LABEL, Label, Panel, Sheet, Words, draw_placed, in_proportion, placed};
use crate::scale::{Scale, count, number, several};
use crate::svg::{Anchor, Font, Stroke};
use crate::text::{in_tip, shortened};
use crate::{Error, Style, Svg};
use covary::Dataset;
use covary::learned::Learned;
use covary::model::{Outlyingness, Tails};
use serde::{Deserialize, Serialize};

/// Rows drawn and named at most, the furthest first.
const MOST_POINTS: usize = 4000;
const MOST_NAMES: usize = 20;
/// Probability below each cut-off, for a row of the model.
const LEVEL: f64 = 0.975;

/// A row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FarRow {
    /// Row, from 1.
    pub row: usize,
    /// Its name, if rows have names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Score distance: the root of Hotelling's T².
    pub score_distance: f64,
    /// Residual distance, in standard deviations of the noise: the root of what the squared Mahalanobis distance has besides.
    pub residual_distance: f64,
    /// Probability that a row of the model is at least as far away in all.
    pub p_value: f64,
    /// Observed cells.
    pub n_observed: usize,
}

/// The numbers behind an outlier map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutliersNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// Rows of the table.
    pub n_rows: usize,
    /// Columns of the model.
    pub n_columns: usize,
    /// The 97.5 % point of the score distance, and that of the residual distance of a complete row; none where all columns
    /// are taken by components.
    pub cut_offs: (f64, Option<f64>),
    /// Rows whose p-value is below 0.01 / rows.
    pub n_outliers: usize,
    /// The rows, the furthest first.
    pub rows: Vec<FarRow>,
}

/// Asks for them.
///
/// ```text
/// score distance² = T²      residual distance² = yᵀ C⁻¹ y − T²      under the model χ² with q and d − q degrees of freedom
/// ```
///
/// # Errors
/// [`Error::NoComponents`], and [`covary::Error::ColumnCount`] if the table has other columns than the model.
pub fn numbers(
    learned: &Learned,
    data: &Dataset,
    labels: Option<&[String]>,
) -> Result<OutliersNumbers, Error> {
    let q = some_components(learned)?;
    let far = learned.linear()?.model.outlyingness(data)?;
    let (n, d) = (data.n_rows(), data.n_columns());
    let row = |(i, o): (usize, &Outlyingness)| FarRow {
        row: i + 1,
        label: labels.map(|l| l[i].clone()).filter(|l| !l.trim().is_empty()),
        score_distance: o.t_squared.max(0.0).sqrt(),
        residual_distance: (o.mahalanobis - o.t_squared).max(0.0).sqrt(),
        p_value: o.tail_probability(),
        n_observed: o.n_observed,
    };
    let mut rows: Vec<FarRow> = far.iter().enumerate().map(row).collect();
    let n_outliers = rows.iter().filter(|r| r.p_value < 0.01 / n as f64).count();
    rows.sort_by(|a, b| a.p_value.total_cmp(&b.p_value).then(a.row.cmp(&b.row)));
    rows.truncate(MOST_POINTS);
    Ok(OutliersNumbers {
        subject: conditions(learned),
        n_rows: n,
        n_columns: d,
        cut_offs: (chi_quantile(q), (d > q).then(|| chi_quantile(d - q))),
        n_outliers,
        rows,
    })
}

/// The root of the 97.5 % point of χ², by halving.
fn chi_quantile(degrees: usize) -> f64 {
    let above = |x: f64| {
        let at = Outlyingness {
            t_squared: 0.0,
            squared_prediction_error: 0.0,
            mahalanobis: x,
            n_observed: degrees,
            tails: Tails::GAUSSIAN,
        };
        at.tail_probability()
    };
    // Far beyond the point sought: the mean and ten standard deviations, and more for few degrees.
    let (mut low, mut high) = (0.0, degrees as f64 + 10.0 * (2.0 * degrees as f64).sqrt() + 20.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if above(middle) > 1.0 - LEVEL { low = middle } else { high = middle }
    }
    (0.5 * (low + high)).sqrt()
}

/// Draws them.
pub fn draw(numbers: &OutliersNumbers, style: &Style) -> Svg {
    let n = numbers;
    let title = match n.n_outliers {
        0 => "No row is an outlier (p < 0.01, Bonferroni)".to_owned(),
        1 => "1 row is an outlier (p < 0.01, Bonferroni)".to_owned(),
        k => format!("{} rows are outliers (p < 0.01, Bonferroni)", count(k)),
    };
    let mut note = vec![
        "Dashed: 97.5 % points of a complete row under the model. Far to the right: extreme, yet as the components say; far up: \
         not explained by them. Filled: outliers."
            .to_owned(),
    ];
    if n.rows.len() < n.n_rows {
        note.push(format!(
            "Shown are the {} of {} least probable rows.",
            count(n.rows.len()),
            count(n.n_rows)
        ));
    }
    let words = Words { title: &title, subtitle: &n.subject, note: &note.join(" ") };
    let mut sheet = Sheet::new(style, in_proportion(style, (640.0, 420.0), 230.0), &words);
    let (body, canvas) = (sheet.body, &mut sheet.canvas);
    let p = canvas.palette();
    let ends = |of: fn(&FarRow) -> f64, cut: f64| {
        let most = n.rows.iter().map(of).chain([1.1 * cut]).fold(1e-9, f64::max);
        let least = n.rows.iter().map(of).chain([cut]).fold(most, f64::min);
        // Distances in many columns are all large: they are told apart, from 0 on or not.
        let from = if least > 0.5 * most { least - 0.1 * (most - least) } else { 0.0 };
        Scale::Linear { from, to: most + 0.06 * (most - from) }
    };
    let x = Axis::new(ends(|r| r.score_distance, n.cut_offs.0), "score distance (√T²)");
    let y = Axis::new(
        ends(|r| r.residual_distance, n.cut_offs.1.unwrap_or(1.0)),
        "residual distance (in sd of the noise)",
    );
    let panel = Panel::new(canvas, body, &x, &y);
    let dashed = Stroke::new(p.second, 1.2).dashed(5.0);
    let (at, area) = (panel.px(n.cut_offs.0), panel.area);
    canvas.line((at, area.y), (at, area.bottom()), dashed);
    if let Some(cut) = n.cut_offs.1 {
        canvas.line((area.x, panel.py(cut)), (area.right(), panel.py(cut)), dashed);
    }
    let outlier = |r: &FarRow| r.p_value < 0.01 / n.n_rows as f64;
    let size = if n.rows.len() > 1000 { 2.0 } else { 3.2 };
    for r in n.rows.iter().rev() {
        let name = r.label.as_ref().map_or(String::new(), |label| format!("{}, ", in_tip(label)));
        let tip = format!(
            "{name}row {}: score distance {}, residual distance {}, p {}; {} observed",
            r.row,
            number(r.score_distance, 3),
            number(r.residual_distance, 3),
            crate::words::p_value(r.p_value),
            several(r.n_observed, "value")
        );
        canvas.labeled("", &tip, |canvas| {
            let color = if outlier(r) { p.second } else { p.main };
            canvas.mark(panel.at((r.score_distance, r.residual_distance)), 0, size, color, !outlier(r));
        });
    }
    // Rows beyond a cut-off have names: their own, or their numbers.
    let beyond = |r: &&FarRow| {
        r.score_distance > n.cut_offs.0 || n.cut_offs.1.is_some_and(|cut| r.residual_distance > cut)
    };
    let named: Vec<&FarRow> = n.rows.iter().filter(beyond).take(MOST_NAMES).collect();
    let name = |r: &&FarRow| r.label.clone().unwrap_or_else(|| r.row.to_string());
    let names = shortened(&named.iter().map(name).collect::<Vec<_>>(), LABEL, 110.0);
    let label = |(r, text): (&&FarRow, String)| Label {
        at: panel.at((r.score_distance, r.residual_distance)),
        text,
        toward: (1.0, -0.3),
    };
    let labels: Vec<Label> = named.iter().zip(names).map(label).collect();
    let points: Vec<(f64, f64)> =
        n.rows.iter().map(|r| panel.at((r.score_distance, r.residual_distance))).collect();
    for (label, place) in labels.iter().zip(placed(&labels, &points, &[], panel.area, 46.0)) {
        if let Some(place) = place {
            draw_placed(canvas, label, place, Font::label(p.ink, Anchor::Start));
        }
    }
    sheet.finish()
}
