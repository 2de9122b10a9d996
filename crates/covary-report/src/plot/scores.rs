//! Scores of the rows on two components, with the uncertainty of rows with missing values.

use super::{component_word, conditions};
use crate::layout::{Axis, Entry, LABEL, Look, Panel, Sheet, Words, color_bar, legend};
use crate::scale::{Scale, count, number, percent, several};
use crate::svg::{Canvas, Rect, Stroke};
use crate::text::{Weight, in_tip, width};
use crate::{Error, Style, Svg};
use covary::learned::Learned;
use covary::{Coordinates, Dataset, Matrix};
use serde::{Deserialize, Serialize};

/// Points drawn one by one.
pub(crate) const MOST_POINTS: usize = 4000;
/// Ellipses drawn.
const MOST_ELLIPSES: usize = 45;
/// Squares along each side where rows are counted instead.
const BINS: (usize, usize) = (72, 52);
/// √(−2 ln 0.05): a normal pair is within this many deviations with probability 95 %.
const REACH: f64 = 2.447_746_830_680_816;

/// What rows are colored by.
#[derive(Debug, Clone, PartialEq)]
pub enum ColorBy {
    /// Groups, one label per row.
    Groups {
        /// Name of the column.
        name: String,
        /// Label of each row.
        labels: Vec<String>,
    },
    /// Numbers, NaN where there is none.
    Values {
        /// Name of the column.
        name: String,
        /// Number of each row.
        values: Vec<f64>,
    },
}

/// A row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Row, from 1.
    pub row: usize,
    /// Score along the first of the two components.
    pub x: f64,
    /// Score along the second.
    pub y: f64,
    /// Gaps of the row.
    pub n_gaps: usize,
    /// Its group, counted in `groups`.
    pub group: Option<usize>,
    /// Its number, if rows are colored by numbers.
    pub value: Option<f64>,
}

/// Uncertainty of a row's scores: half axes of the 95 % ellipse and the angle of the first one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ellipse {
    /// Row, from 1.
    pub row: usize,
    /// Center.
    pub center: (f64, f64),
    /// Half the long axis, half the short one.
    pub half: (f64, f64),
    /// Angle of the long axis in degrees, against the clock.
    pub angle: f64,
    /// Group of the row.
    pub group: Option<usize>,
}

/// Rows counted in squares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bins {
    /// Left and right end.
    pub x: (f64, f64),
    /// Lower and upper end.
    pub y: (f64, f64),
    /// Rows in each square, bottom row first.
    pub counts: Vec<Vec<usize>>,
}

/// The numbers behind a plot of scores.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoresNumbers {
    /// What was fitted to what.
    pub subject: String,
    /// `component`, or `factor`.
    pub component_word: String,
    /// The two components, from 1.
    pub components: (usize, usize),
    /// Share of the variance that each explains; none for rotated ones.
    pub shares: Option<(f64, f64)>,
    /// Whether scores are projections in the units of the table; else they have unit variance.
    pub projection: bool,
    /// Rows of the table.
    pub n_rows: usize,
    /// Rows with a gap.
    pub n_with_gaps: usize,
    /// Name of the column that colors.
    pub color_by: Option<String>,
    /// Names of the groups, the most frequent first; the last may stand for all others.
    pub groups: Vec<String>,
    /// Rows drawn one by one.
    pub points: Vec<Point>,
    /// All rows, counted, where they are too many and have no color.
    pub bins: Option<Bins>,
    /// Ellipses of rows with gaps.
    pub ellipses: Vec<Ellipse>,
}

/// Asks for them: posterior scores, and projections for PCA. A model with one component has its rows in
/// their order along the second axis.
///
/// # Errors
/// [`Error::NoComponents`], [`Error::NoSuchComponent`] if the model lacks them, and
/// [`covary::Error::ColumnCount`] if the table has other columns than the model.
pub fn numbers(
    learned: &Learned,
    data: &Dataset,
    components: (usize, usize),
    color_by: Option<&ColorBy>,
) -> Result<ScoresNumbers, Error> {
    let linear = learned.linear()?;
    let has = super::some_components(learned)?;
    let components = if has == 1 { (components.0, components.0) } else { components };
    for asked in [components.0, components.1] {
        if asked == 0 || asked > has {
            return Err(Error::NoSuchComponent { asked, has });
        }
    }
    let (a, b) = (components.0 - 1, components.1 - 1);
    let projection = learned.coordinates() == Coordinates::Projection;
    let n = data.n_rows();
    let (groups, group_of) = grouped(color_by);
    let many = n > MOST_POINTS;
    let drawn: Vec<usize> = match (many, color_by) {
        (false, _) => (0..n).collect(),
        (true, Some(_)) => data.spread_rows(MOST_POINTS),
        (true, None) => Vec::new(),
    };
    let asked = if many && color_by.is_some() { data.of_rows(&drawn)? } else { data.clone() };
    let scores = scores_of(learned, &asked, projection)?;
    // With one component the order of the rows is the other axis.
    let second =
        |i: usize| if has == 1 { (if many { drawn[i] } else { i }) as f64 + 1.0 } else { scores[(i, b)] };
    let n_gaps = |i: usize| data.row(i).iter().filter(|v| v.is_nan()).count();
    let points: Vec<Point> = drawn
        .iter()
        .enumerate()
        .map(|(k, &row)| Point {
            row: row + 1,
            x: scores[(k, a)],
            y: second(k),
            n_gaps: n_gaps(row),
            group: group_of.as_ref().map(|g| g[row]),
            value: match color_by {
                Some(ColorBy::Values { values, .. }) => Some(values[row]).filter(|v| v.is_finite()),
                _ => None,
            },
        })
        .collect();
    let bins = (many && color_by.is_none()).then(|| {
        binned((0..n).map(|i| (scores[(i, a)], if has == 1 { i as f64 + 1.0 } else { scores[(i, b)] })))
    });

    let with_gaps: Vec<usize> = (0..n).filter(|&i| data.row(i).iter().any(|v| v.is_nan())).collect();
    let mut ellipses = Vec::new();
    if has > 1 && !with_gaps.is_empty() && !many {
        let step = with_gaps.len().div_ceil(MOST_ELLIPSES);
        let chosen: Vec<usize> = with_gaps.iter().copied().step_by(step).collect();
        let rows = data.of_rows(&chosen)?;
        let (of_row, covariances) = covariances_of(learned, &rows, projection)?;
        for (k, &row) in chosen.iter().enumerate() {
            let c = &covariances[of_row[k]];
            let (half, angle) = ellipse_of(c[(a, a)], c[(a, b)], c[(b, b)]);
            ellipses.push(Ellipse {
                row: row + 1,
                center: (scores[(row, a)], scores[(row, b)]),
                half,
                angle,
                group: group_of.as_ref().map(|g| g[row]),
            });
        }
    }
    let shares = linear.rotation.is_none().then(|| linear.model.explained_variance_ratio());
    Ok(ScoresNumbers {
        subject: conditions(learned),
        component_word: component_word(learned).to_owned(),
        components: if has == 1 { (1, 0) } else { components },
        shares: shares.map(|s| (s[a], s[b])),
        projection,
        n_rows: n,
        n_with_gaps: with_gaps.len(),
        color_by: color_by.map(|c| match c {
            ColorBy::Groups { name, .. } | ColorBy::Values { name, .. } => name.clone(),
        }),
        groups,
        points,
        bins,
        ellipses,
    })
}

fn scores_of(learned: &Learned, data: &Dataset, projection: bool) -> Result<Matrix, Error> {
    let linear = learned.linear()?;
    let how = if projection { Coordinates::Projection } else { Coordinates::Posterior };
    let scores = linear.model.transform(data, how)?;
    Ok(match &linear.rotation {
        Some(r) => r.rotated.scores(&scores)?,
        None => scores,
    })
}

fn covariances_of(
    learned: &Learned,
    data: &Dataset,
    projection: bool,
) -> Result<(Vec<usize>, Vec<Matrix>), Error> {
    let linear = learned.linear()?;
    if projection {
        return Ok(linear.model.projection_covariances(data, &linear.model.principal_axes().0)?);
    }
    let posterior = linear.model.posterior(data)?;
    let covariances = match &linear.rotation {
        Some(r) => posterior.covariances.iter().map(|c| r.rotated.score_covariance(c)).collect(),
        None => posterior.covariances,
    };
    Ok((posterior.pattern_of_row, covariances))
}

/// Half axes of the ellipse that covers 95 % of a normal pair with this covariance, and the angle of the
/// long one.
pub(crate) fn ellipse_of(xx: f64, xy: f64, yy: f64) -> ((f64, f64), f64) {
    let (mean, half) = (0.5 * (xx + yy), 0.5 * (xx - yy));
    let root = half.hypot(xy);
    let angle = 0.5 * xy.atan2(half).to_degrees();
    let reach = |variance: f64| REACH * variance.max(0.0).sqrt();
    ((reach(mean + root), reach(mean - root)), angle)
}

/// Names of the groups, most frequent first, and the group of each row: six, and the rest together.
fn grouped(color_by: Option<&ColorBy>) -> (Vec<String>, Option<Vec<usize>>) {
    let Some(ColorBy::Groups { labels, .. }) = color_by else { return (Vec::new(), None) };
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for label in labels {
        *counts.entry(label).or_default() += 1;
    }
    let mut order: Vec<(&str, usize)> = counts.into_iter().collect();
    order.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let named = if order.len() > 7 { 6 } else { order.len() };
    let mut kept: Vec<&str> = order[..named].iter().map(|(l, _)| *l).collect();
    kept.sort_unstable();
    let place = |label: &String| kept.iter().position(|k| k == label).unwrap_or(named);
    let of_row = labels.iter().map(place).collect();
    let word = |l: &&str| if l.is_empty() { "(none)".to_owned() } else { (*l).to_owned() };
    let mut names: Vec<String> = kept.iter().map(word).collect();
    if order.len() > named {
        names.push(format!("{} others", order.len() - named));
    }
    (names, Some(of_row))
}

fn binned(points: impl Iterator<Item = (f64, f64)> + Clone) -> Bins {
    let range = |of: &dyn Fn((f64, f64)) -> f64| Scale::over(points.clone().map(of), false).ends();
    let (x, y) = (range(&|p| p.0), range(&|p| p.1));
    let (across, up) = BINS;
    let mut counts = vec![vec![0; across]; up];
    let place = |v: f64, (from, to): (f64, f64), n: usize| {
        (((v - from) / (to - from) * n as f64) as usize).min(n - 1)
    };
    for (px, py) in points {
        counts[place(py, y, up)][place(px, x, across)] += 1;
    }
    Bins { x, y, counts }
}

/// Draws them.
pub fn draw(numbers: &ScoresNumbers, style: &Style) -> Svg {
    let n = numbers;
    let word = &n.component_word;
    let by = n.color_by.as_ref().map_or(String::new(), |name| format!(", by {name}"));
    let title = match n.components {
        (a, 0) => format!("Scores on {word} {a}{by}"),
        (a, b) => format!("Scores on {word}s {a} and {b}{by}"),
    };
    let note = notes(n);
    let mut sheet =
        Sheet::new(style, (660.0, 500.0), &Words { title: &title, subtitle: &n.subject, note: &note });
    let body = sheet.body;
    let outer = Rect { w: body.w - bar_room(n), ..body };
    let panel = scatter(&mut sheet.canvas, outer, n, &[], true);
    key(&mut sheet.canvas, body, &panel, n);
    sheet.finish()
}

pub(crate) fn notes(n: &ScoresNumbers) -> String {
    let mut note = Vec::new();
    if n.bins.is_some() {
        note.push(format!(
            "{} are counted in squares: the stronger the color, the more rows.",
            several(n.n_rows, "row")
        ));
    } else if n.points.len() < n.n_rows {
        note.push(format!(
            "{} of {} rows are shown, evenly spread over the table.",
            count(n.points.len()),
            count(n.n_rows)
        ));
    }
    if n.n_with_gaps > 0 && n.bins.is_none() {
        note.push(format!("Hollow: {} with missing values.", several(n.n_with_gaps, "row")));
    }
    if !n.ellipses.is_empty() {
        let of = if n.ellipses.len() < n.n_with_gaps {
            format!(", shown for {} of these rows", n.ellipses.len())
        } else {
            String::new()
        };
        note.push(format!("Ellipses: 95 % posterior regions of the scores{of}."));
    }
    note.join(" ")
}

fn bar_room(n: &ScoresNumbers) -> f64 {
    if n.points.iter().any(|p| p.value.is_some()) { 66.0 } else { 0.0 }
}

/// Axis names with the share that each component explains.
fn names(n: &ScoresNumbers) -> (String, String) {
    let unit = if n.projection { "in units of the table" } else { "standard deviations" };
    let name = |k: usize, share: Option<f64>| {
        let share = share.map_or(String::new(), |s| format!(", {} of the variance", percent(s)));
        format!("{} {k} ({unit}{share})", n.component_word)
    };
    let second =
        if n.components.1 == 0 { "row".to_owned() } else { name(n.components.1, n.shares.map(|s| s.1)) };
    (name(n.components.0, n.shares.map(|s| s.0)), second)
}

/// Draws points and ellipses in a panel whose two axes have one scale, so that distances and angles mean
/// something. `also` are places that must be inside.
pub(crate) fn scatter(
    canvas: &mut Canvas,
    outer: Rect,
    n: &ScoresNumbers,
    also: &[(f64, f64)],
    ellipses: bool,
) -> Panel {
    let p = canvas.palette();
    let inside = if ellipses { reach(n).collect::<Vec<_>>() } else { points_of(n).collect() };
    let places = || inside.iter().chain(also).copied();
    let ends = n.bins.as_ref().map(|b| [(b.x.0, b.y.0), (b.x.1, b.y.1)]);
    let span = |of: fn((f64, f64)) -> f64| {
        roomy(Scale::over(places().chain(ends.into_iter().flatten()).map(of), false).ends())
    };
    let (mut x, mut y) = (span(|q| q.0), span(|q| q.1));
    if n.components.1 > 0 {
        (x, y) = one_scale(outer, x, y);
    }
    let (x_name, y_name) = names(n);
    let x = Axis::new(Scale::Linear { from: x.0, to: x.1 }, x_name);
    let y = Axis::new(Scale::Linear { from: y.0, to: y.1 }, y_name);
    let panel = Panel::new(canvas, outer, &x, &y);
    if let Some(bins) = &n.bins {
        draw_bins(canvas, &panel, bins);
    }
    let values: Vec<f64> = n.points.iter().filter_map(|q| q.value).collect();
    let range = Scale::over(values.iter().copied(), false);
    let color = |group: Option<usize>, value: Option<f64>| match (group, value) {
        (Some(g), _) => p.group(g),
        (_, Some(v)) => p.sequential(0.12 + 0.88 * range.place(v)),
        // Under arrows, rows are the background.
        _ if values.is_empty() => p.main.towards(p.paper, if ellipses { 0.0 } else { 0.45 }),
        _ => p.axis,
    };
    let series = |group: Option<usize>| group.map_or("", |g| n.groups[g].as_str());
    canvas.clipped(panel.area, |canvas| {
        if ellipses {
            let faint = (14.0 / n.ellipses.len().max(1) as f64).clamp(0.16, 0.5);
            for e in &n.ellipses {
                let half = (panel.px(e.half.0) - panel.px(0.0), panel.px(e.half.1) - panel.px(0.0));
                let stroke = Stroke::new(color(e.group, None), 0.9).faint(faint);
                canvas.labeled(series(e.group), "", |canvas| {
                    canvas.ellipse(panel.at(e.center), half, -e.angle, stroke);
                });
            }
        }
        let size = match n.points.len() {
            0..=400 => 3.2,
            401..=1500 => 2.5,
            _ => 1.9,
        };
        for q in &n.points {
            let kind = q.group.unwrap_or(0);
            canvas.labeled(series(q.group), &tip(n, q), |canvas| {
                canvas.mark(panel.at((q.x, q.y)), kind, size, color(q.group, q.value), q.n_gaps > 0);
            });
        }
    });
    panel
}

/// Ends with some room between the marks and the frame.
pub(crate) fn roomy((from, to): (f64, f64)) -> (f64, f64) {
    let room = 0.04 * (to - from);
    (from - room, to + room)
}

/// Ends of two axes that contain these and have one scale.
pub(crate) fn one_scale(outer: Rect, x: (f64, f64), y: (f64, f64)) -> ((f64, f64), (f64, f64)) {
    let (w, h) = ((outer.w - 40.0).max(30.0), (outer.h - 62.0).max(30.0));
    let per_pixel = ((x.1 - x.0) / w).max((y.1 - y.0) / h);
    let widen = |(from, to): (f64, f64), pixels: f64| {
        let (center, half) = (0.5 * (from + to), 0.5 * per_pixel * pixels);
        (center - half, center + half)
    };
    (widen(x, w), widen(y, h))
}

/// The tooltip of a row.
fn tip(n: &ScoresNumbers, q: &Point) -> String {
    let second = (n.components.1 > 0).then(|| format!(", {}", number(q.y, 3)));
    let gaps = (q.n_gaps > 0).then(|| format!("; {}", several(q.n_gaps, "missing value")));
    let color = match (q.group, q.value) {
        (Some(g), _) => Some(format!("; {}", in_tip(&n.groups[g]))),
        (_, Some(v)) => Some(format!("; {}", number(v, 4))),
        _ => None,
    };
    let first = format!("row {}: {}", q.row, number(q.x, 3));
    std::iter::once(first).chain([second, gaps, color].into_iter().flatten()).collect()
}

fn points_of(n: &ScoresNumbers) -> impl Iterator<Item = (f64, f64)> {
    n.points.iter().map(|q| (q.x, q.y))
}

/// The points, and corners around the ellipses.
pub(crate) fn reach(n: &ScoresNumbers) -> impl Iterator<Item = (f64, f64)> {
    points_of(n).chain(n.ellipses.iter().flat_map(corners))
}

/// Two corners of the box around an ellipse.
pub(crate) fn corners(e: &Ellipse) -> [(f64, f64); 2] {
    let (x, y) = reach_of(e);
    [(e.center.0 - x, e.center.1 - y), (e.center.0 + x, e.center.1 + y)]
}

/// Half the width and half the height of an ellipse.
fn reach_of(e: &Ellipse) -> (f64, f64) {
    let (sin, cos) = e.angle.to_radians().sin_cos();
    ((e.half.0 * cos).hypot(e.half.1 * sin), (e.half.0 * sin).hypot(e.half.1 * cos))
}

fn draw_bins(canvas: &mut Canvas, panel: &Panel, bins: &Bins) {
    const SHADES: usize = 12;
    let p = canvas.palette();
    let most = bins.counts.iter().flatten().copied().max().unwrap_or(1).max(2) as f64;
    let (up, across) = (bins.counts.len(), bins.counts.first().map_or(1, Vec::len));
    let mut shades: Vec<Vec<Rect>> = vec![Vec::new(); SHADES];
    for (i, row) in bins.counts.iter().enumerate() {
        for (k, &c) in row.iter().enumerate().filter(|(_, c)| **c > 0) {
            let at = |(from, to): (f64, f64), k: usize, n: usize| from + (to - from) * k as f64 / n as f64;
            let (x0, y0) = panel.at((at(bins.x, k, across), at(bins.y, i + 1, up)));
            let (x1, y1) = panel.at((at(bins.x, k + 1, across), at(bins.y, i, up)));
            // Even steps of the logarithm: single rows stay visible beside thousands.
            let shade = ((c as f64).ln() / most.ln() * (SHADES - 1) as f64).round() as usize;
            shades[shade].push(Rect { x: x0, y: y0, w: x1 - x0, h: y1 - y0 });
        }
    }
    for (k, cells) in shades.iter().enumerate() {
        canvas.cells(cells, p.sequential(0.15 + 0.85 * k as f64 / (SHADES - 1) as f64));
    }
}

/// The legend of groups, or the bar of values.
pub(crate) fn key(canvas: &mut Canvas, body: Rect, panel: &Panel, n: &ScoresNumbers) {
    let p = canvas.palette();
    let entries: Vec<Entry<'_>> = n
        .groups
        .iter()
        .enumerate()
        .map(|(k, text)| Entry { text, color: p.group(k), look: Look::Mark { kind: k, hollow: false } })
        .collect();
    if !entries.is_empty() {
        let needed: f64 =
            entries.iter().map(|e| width(e.text, LABEL, Weight::Regular) + 32.0).sum::<f64>() - 16.0;
        let axis = width(&names(n).1, LABEL, Weight::Regular);
        // To the right of the name of the axis, or not at all over it.
        let from = (body.right() - 8.0 - needed).max(body.x + axis + 20.0);
        legend(canvas, (from, body.y + 11.0), body.right() - from, &entries);
    }
    let values: Vec<f64> = n.points.iter().filter_map(|q| q.value).collect();
    if !values.is_empty() {
        let (from, to) = Scale::over(values, false).ends();
        let bar = Rect {
            x: panel.area.right() + 14.0,
            y: panel.area.y + 10.0,
            w: 11.0,
            h: (panel.area.h - 20.0).min(220.0),
        };
        let ticks = [(0.0, number(from, 3)), (0.5, number(0.5 * (from + to), 3)), (1.0, number(to, 3))];
        color_bar(canvas, bar, |share| p.sequential(0.12 + 0.88 * share), &ticks);
    }
}
