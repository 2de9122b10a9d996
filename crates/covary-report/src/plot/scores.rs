//! Scores of the rows on two components, with the uncertainty of rows with missing values.

use super::{component_word, conditions};
use crate::layout::{
    Axis, Entry, LABEL, Label, Look, NARROW, Panel, Sheet, Words, draw_legend_beside, draw_placed,
    in_proportion, legend, legend_beside, legend_height, placed, titled_bar,
};
use crate::scale::{Scale, count, number, percent, several};
use crate::svg::{Anchor, Canvas, Font, Rect, Stroke};
use crate::text::{in_tip, shortened};
use crate::theme::Color;
use crate::{Error, Style, Svg};
use covary::learned::Learned;
use covary::{Coordinates, Dataset, Matrix};
use serde::{Deserialize, Serialize};

/// Points drawn one by one.
pub(crate) const MOST_POINTS: usize = 4000;
/// Rows whose uncertainty is drawn: those where it is largest.
const MOST_ELLIPSES: usize = 20;
/// Rows that are named: all of a small table, of others those furthest from the center.
const MOST_NAMES: usize = 60;
const ROOM_OF_NAME: f64 = 2600.0;
const NAMES_OF_MANY: usize = 25;
/// Hexagons along the longer side where rows are counted instead.
const HEXAGONS: f64 = 64.0;
/// Places of a density.
const PLACES: usize = 161;
/// Groups with a color and shape of their own.
pub const MOST_GROUPS: usize = 12;
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

/// Whose ellipses are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ellipses {
    /// Those of groups: where 95 % of the rows of a normal distribution with the mean and covariance of the group's
    /// scores would lie.
    #[default]
    Groups,
    /// Those of the rows whose scores are least certain: 95 % posterior regions.
    Rows,
    /// None.
    None,
}

/// How rows are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Rows<'a> {
    /// What they are colored by.
    pub color_by: Option<&'a ColorBy>,
    /// Their names.
    pub labels: Option<&'a [String]>,
    /// Whose ellipses are drawn.
    pub ellipses: Ellipses,
}

impl<'a> Rows<'a> {
    /// Colored, without names.
    pub fn by(color_by: Option<&'a ColorBy>) -> Self {
        Self { color_by, ..Self::default() }
    }
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
    /// Its name, if rows have names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// Where 95 % of a normal distribution with the mean and covariance of a group lie.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupEllipse {
    /// The group, counted in `groups`.
    pub group: usize,
    /// Its rows.
    pub n_rows: usize,
    /// Their mean.
    pub center: (f64, f64),
    /// Half the long axis, half the short one.
    pub half: (f64, f64),
    /// Angle of the long axis in degrees, against the clock.
    pub angle: f64,
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

/// Rows counted in hexagons that touch each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hexagons {
    /// Distance of neighboring centers.
    pub width: f64,
    /// Center of each hexagon that has rows, and their number.
    pub cells: Vec<(f64, f64, usize)>,
}

/// Density of the scores on one component, by a normal kernel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Density {
    /// The group, counted in `groups`.
    pub group: Option<usize>,
    /// Standard deviation of the kernel.
    pub bandwidth: f64,
    /// Places and the density there.
    pub curve: Vec<(f64, f64)>,
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
    /// Names of the groups; after `n_named` of them come all others together, and rows without a group.
    pub groups: Vec<String>,
    /// Groups with a color of their own.
    #[serde(default)]
    pub n_named: usize,
    /// Rows drawn one by one.
    pub points: Vec<Point>,
    /// All rows, counted, where they are too many and have no color.
    pub hexagons: Option<Hexagons>,
    /// Ellipses of the least certain rows, if they were asked for.
    pub ellipses: Vec<Ellipse>,
    /// Ellipses of groups.
    #[serde(default)]
    pub group_ellipses: Vec<GroupEllipse>,
    /// Densities of a single component, of all rows or of each group.
    #[serde(default)]
    pub densities: Vec<Density>,
}

/// Asks for them: posterior scores, and projections for PCA. Of a model with one component it asks for densities.
///
/// # Errors
/// [`Error::NoComponents`], [`Error::NoSuchComponent`] if the model lacks them, and
/// [`covary::Error::ColumnCount`] if the table has other columns than the model.
pub fn numbers(
    learned: &Learned,
    data: &Dataset,
    components: (usize, usize),
    rows: &Rows<'_>,
) -> Result<ScoresNumbers, Error> {
    let color_by = rows.color_by;
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
    let (groups, n_named, group_of) = grouped(color_by);
    let many = n > MOST_POINTS;
    let counted = many && color_by.is_none() && has > 1;
    let drawn: Vec<usize> = match (many, counted) {
        (false, _) => (0..n).collect(),
        (true, false) => data.spread_rows(MOST_POINTS),
        (true, true) => Vec::new(),
    };
    let asked = if many && !counted { data.of_rows(&drawn)? } else { data.clone() };
    let scores = scores_of(learned, &asked, projection)?;
    let n_gaps = |i: usize| data.row(i).iter().filter(|v| v.is_nan()).count();
    let points: Vec<Point> = drawn
        .iter()
        .enumerate()
        .map(|(k, &row)| Point {
            row: row + 1,
            x: scores[(k, a)],
            y: if has == 1 { 0.0 } else { scores[(k, b)] },
            n_gaps: n_gaps(row),
            group: group_of.as_ref().map(|g| g[row]),
            value: match color_by {
                Some(ColorBy::Values { values, .. }) => Some(values[row]).filter(|v| v.is_finite()),
                _ => None,
            },
            label: rows.labels.map(|l| l[row].clone()).filter(|l| !l.trim().is_empty()),
        })
        .collect();
    let hexagons = counted.then(|| in_hexagons((0..n).map(|i| (scores[(i, a)], scores[(i, b)]))));

    let with_gaps: Vec<usize> = (0..n).filter(|&i| data.row(i).iter().any(|v| v.is_nan())).collect();
    let mut ellipses = Vec::new();
    if rows.ellipses == Ellipses::Rows && has > 1 && !many {
        let (of_row, covariances) = covariances_of(learned, data, projection)?;
        for row in 0..n {
            let c = &covariances[of_row[row]];
            let (half, angle) = ellipse_of(c[(a, a)], c[(a, b)], c[(b, b)]);
            let center = (scores[(row, a)], scores[(row, b)]);
            let group = group_of.as_ref().map(|g| g[row]);
            ellipses.push(Ellipse { row: row + 1, center, half, angle, group });
        }
        let area = |e: &Ellipse| e.half.0 * e.half.1;
        ellipses.sort_by(|p, q| area(q).total_cmp(&area(p)).then(p.row.cmp(&q.row)));
        ellipses.truncate(MOST_ELLIPSES);
    }
    let group_ellipses = if rows.ellipses == Ellipses::Groups && has > 1 {
        (0..n_named).filter_map(|group| group_ellipse(group, &points)).collect()
    } else {
        Vec::new()
    };
    let densities = if has == 1 { densities(&points, n_named) } else { Vec::new() };
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
        n_named,
        points,
        hexagons,
        ellipses,
        group_ellipses,
        densities,
    })
}

/// Of three rows at least, since two lie on a line.
fn group_ellipse(group: usize, points: &[Point]) -> Option<GroupEllipse> {
    let own: Vec<(f64, f64)> = points.iter().filter(|q| q.group == Some(group)).map(|q| (q.x, q.y)).collect();
    let n = own.len();
    if n < 3 {
        return None;
    }
    let mean = |of: fn(&(f64, f64)) -> f64| own.iter().map(of).sum::<f64>() / n as f64;
    let center = (mean(|q| q.0), mean(|q| q.1));
    let moment = |of: &dyn Fn(f64, f64) -> f64| {
        own.iter().map(|q| of(q.0 - center.0, q.1 - center.1)).sum::<f64>() / (n - 1) as f64
    };
    let (half, angle) = ellipse_of(moment(&|x, _| x * x), moment(&|x, y| x * y), moment(&|_, y| y * y));
    Some(GroupEllipse { group, n_rows: n, center, half, angle })
}

/// Densities of the groups, or of all rows where there are none.
pub(crate) fn densities(points: &[Point], n_named: usize) -> Vec<Density> {
    let of = |group: Option<usize>| {
        let own = points.iter().filter(|q| group.is_none() || q.group == group);
        density(&own.map(|q| q.x).collect::<Vec<_>>()).map(|(bandwidth, curve)| Density {
            group,
            bandwidth,
            curve,
        })
    };
    if n_named == 0 {
        of(None).into_iter().collect()
    } else {
        (0..n_named).filter_map(|g| of(Some(g))).collect()
    }
}

/// A density by a normal kernel of width 0.9 min(sd, IQR / 1.34) n^(−1/5) (Silverman 1986, eq. 3.31), where two values differ.
pub(crate) fn density(values: &[f64]) -> Option<(f64, Vec<(f64, f64)>)> {
    let mut sorted = values.to_vec();
    sorted.retain(|v| v.is_finite());
    sorted.sort_by(f64::total_cmp);
    let (first, last) = (*sorted.first()?, *sorted.last()?);
    let n = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / n;
    let sd = (sorted.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let quantile = |p: f64| {
        let at = p * (n - 1.0);
        let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
        low + (high - low) * at.fract()
    };
    let iqr = (quantile(0.75) - quantile(0.25)) / 1.34;
    let spread = if iqr > 0.0 { sd.min(iqr) } else { sd };
    let width = 0.9 * spread * n.powf(-0.2);
    if !(width > 0.0 && width.is_finite()) {
        return None;
    }
    let (from, to) = (first - 3.0 * width, last + 3.0 * width);
    let scale = 1.0 / (n * width * std::f64::consts::TAU.sqrt());
    let at = |k: usize| {
        let x = from + (to - from) * k as f64 / (PLACES - 1) as f64;
        // Values beyond eight widths add nothing that a number could hold.
        let near = sorted.partition_point(|v| *v < x - 8.0 * width)
            ..sorted.partition_point(|v| *v <= x + 8.0 * width);
        let sum: f64 = sorted[near].iter().map(|v| (-0.5 * ((x - v) / width).powi(2)).exp()).sum();
        (x, scale * sum)
    };
    Some((width, (0..PLACES).map(at).collect()))
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

/// Names of the groups, how many have a color of their own, and the group of each row: twelve, the most frequent, then all
/// others together, then the rows without one.
fn grouped(color_by: Option<&ColorBy>) -> (Vec<String>, usize, Option<Vec<usize>>) {
    let Some(ColorBy::Groups { labels, .. }) = color_by else { return (Vec::new(), 0, None) };
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    for label in labels.iter().filter(|l| !l.trim().is_empty()) {
        *counts.entry(label).or_default() += 1;
    }
    let mut order: Vec<(&str, usize)> = counts.into_iter().collect();
    order.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let all = order.len();
    let named = all.min(MOST_GROUPS);
    let mut kept: Vec<&str> = order[..named].iter().map(|(l, _)| *l).collect();
    kept.sort_unstable();
    let mut names: Vec<String> = kept.iter().map(|l| (*l).to_owned()).collect();
    if all > named {
        names.push(several(all - named, "other"));
    }
    let none = names.len();
    if labels.iter().any(|l| l.trim().is_empty()) {
        names.push("(missing)".to_owned());
    }
    let place = |label: &String| {
        if label.trim().is_empty() { none } else { kept.iter().position(|k| k == label).unwrap_or(named) }
    };
    let of_row = labels.iter().map(place).collect();
    (names, named, Some(of_row))
}

/// Rows counted in the hexagons whose centers are nearest to them: two lattices of rectangles, one in the middle of the other.
fn in_hexagons(points: impl Iterator<Item = (f64, f64)> + Clone) -> Hexagons {
    let range = |of: &dyn Fn((f64, f64)) -> f64| Scale::over(points.clone().map(of), false).ends();
    let (x, y) = (range(&|p| p.0), range(&|p| p.1));
    let width = ((x.1 - x.0).max(y.1 - y.0) / HEXAGONS).max(f64::MIN_POSITIVE);
    let tall = 3f64.sqrt() * width;
    let mut counts = std::collections::BTreeMap::<(i64, i64), usize>::new();
    for (px, py) in points.filter(|(px, py)| px.is_finite() && py.is_finite()) {
        let (u, v) = ((px - x.0) / width, (py - y.0) / tall);
        // In halves of the sides: even pairs are one lattice, odd pairs the other.
        let even = ((u.round() * 2.0) as i64, (v.round() * 2.0) as i64);
        let odd = ((u.floor() * 2.0) as i64 + 1, (v.floor() * 2.0) as i64 + 1);
        let far = |(a, b): (i64, i64)| (u - 0.5 * a as f64).powi(2) + 3.0 * (v - 0.5 * b as f64).powi(2);
        *counts.entry(if far(even) <= far(odd) { even } else { odd }).or_default() += 1;
    }
    let center =
        |((a, b), n): ((i64, i64), usize)| (x.0 + 0.5 * width * a as f64, y.0 + 0.5 * tall * b as f64, n);
    Hexagons { width, cells: counts.into_iter().map(center).collect() }
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
    let usual = if n.components.1 == 0 { (660.0, 330.0) } else { (660.0, 500.0) };
    let usual = with_legend(in_proportion(style, usual, 180.0), n, style);
    let mut sheet = Sheet::new(style, usual, &Words { title: &title, subtitle: &n.subject, note: &note });
    let (body, canvas) = (sheet.body, &mut sheet.canvas);
    let (outer, _) = frame(canvas, body, n, 1.0);
    if n.components.1 == 0 {
        draw_densities(canvas, outer, n);
    } else {
        let panel = scatter(canvas, outer, n, &[], false);
        name_rows(canvas, &panel, n);
    }
    sheet.finish()
}

/// A size that also has room for a legend above.
pub(crate) fn with_legend((wide, tall): (f64, f64), n: &ScoresNumbers, style: &Style) -> (f64, f64) {
    let room = crate::layout::room(style, wide);
    let above = if room < NARROW { legend_height(&entries(n, style.theme.palette()), room) } else { 0.0 };
    (wide, tall + above)
}

pub(crate) fn notes(n: &ScoresNumbers) -> String {
    let mut note = Vec::new();
    note.push(format!(
        "Scores are in {}.",
        if n.projection { "the units of the table" } else { "standard deviations of the component" }
    ));
    if n.hexagons.is_some() {
        note.push(format!("{} are counted in hexagons.", several(n.n_rows, "row")));
    } else if n.points.len() < n.n_rows {
        note.push(format!(
            "{} of {} rows are shown, evenly spread over the table.",
            count(n.points.len()),
            count(n.n_rows)
        ));
    }
    if n.n_with_gaps > 0 && n.hexagons.is_none() && n.components.1 > 0 {
        note.push(format!("Hollow: {} with missing values.", several(n.n_with_gaps, "row")));
    }
    if n.components.1 == 0 {
        note.push("The density is by a normal kernel; each line below it is a row.".to_owned());
    }
    if !n.group_ellipses.is_empty() {
        note.push(
            "Ellipses cover 95 % of a normal distribution with the mean and covariance of the group."
                .to_owned(),
        );
    }
    if !n.ellipses.is_empty() {
        let of = match (n.ellipses.len(), n.n_rows) {
            (some, all) if some < all => format!(" of the {some} least certain rows"),
            _ => String::new(),
        };
        note.push(format!("Ellipses are 95 % posterior regions{of}."));
    }
    note.join(" ")
}

/// Room at the right for a bar of colors, or what it stands for.
pub(crate) const BAR_ROOM: f64 = 78.0;

/// Draws the legend or the bar, `share` of the height; returns the room that is left beside it, and that below it, if any.
pub(crate) fn frame(canvas: &mut Canvas, body: Rect, n: &ScoresNumbers, share: f64) -> (Rect, Option<Rect>) {
    let p = canvas.palette();
    let entries = entries(n, p);
    let title = n.color_by.as_deref().unwrap_or_default();
    if !entries.is_empty() {
        if body.w < NARROW {
            let above = legend_height(&entries, body.w);
            legend(canvas, (body.x, body.y + 9.0), body.w, &entries);
            return (body.inside(0.0, above + 4.0, 0.0, 0.0), None);
        }
        let (wide, tall) = legend_beside(title, &entries);
        let column = if share < 1.0 { wide.max(BAR_ROOM - 12.0) } else { wide };
        let area = Rect { x: body.right() - column, y: body.y + 14.0, w: wide, h: tall };
        draw_legend_beside(canvas, area, title, &entries);
        let below =
            Rect { x: area.x, y: area.bottom() + 10.0, w: column, h: body.bottom() - area.bottom() - 44.0 };
        return (Rect { w: body.w - column - 14.0, ..body }, Some(below));
    }
    let column =
        Rect { x: body.right() - BAR_ROOM + 12.0, y: body.y + 16.0, w: BAR_ROOM - 12.0, h: body.h - 50.0 };
    let area = Rect { h: share * column.h, ..column };
    let values: Vec<f64> = n.points.iter().filter_map(|q| q.value).collect();
    if let Some(hexagons) = &n.hexagons {
        let most = most_rows(hexagons);
        let powers = (0..=most.log10().floor() as i32).map(|e| 10f64.powi(e));
        let ticks: Vec<(f64, String)> = powers.map(|v| (v.ln() / most.ln(), count(v as usize))).collect();
        titled_bar(canvas, area, "rows per hexagon", |share| p.sequential(0.15 + 0.85 * share), &ticks);
    } else if values.is_empty() {
        return (body, None);
    } else {
        let (from, to) = Scale::over(values, false).ends();
        let ticks = [(0.0, number(from, 3)), (0.5, number(0.5 * (from + to), 3)), (1.0, number(to, 3))];
        titled_bar(canvas, area, title, |share| p.sequential(0.25 + 0.75 * share), &ticks);
    }
    let below = Rect { y: area.bottom() + 8.0, h: column.h - area.h - 8.0, ..column };
    (Rect { w: body.w - BAR_ROOM, ..body }, Some(below))
}

/// Entries of the legend of groups.
pub(crate) fn entries<'a>(n: &'a ScoresNumbers, p: &crate::theme::Palette) -> Vec<Entry<'a>> {
    let entry = |(k, text): (usize, &'a String)| {
        let (color, kind) = look(n, p, k);
        Entry { text, color, look: Look::Mark { kind, hollow: false } }
    };
    n.groups.iter().enumerate().map(entry).collect()
}

/// Color and mark of a group: gray for all others, and for rows without one.
pub(crate) fn look(n: &ScoresNumbers, p: &crate::theme::Palette, group: usize) -> (Color, usize) {
    if group < n.n_named { p.level(group) } else { (p.group(usize::MAX), 0) }
}

/// Axis names with the share that each component explains.
fn names(n: &ScoresNumbers) -> (String, String) {
    axis_names(&n.component_word, n.components, n.shares)
}

/// Names of two axes.
pub(crate) fn axis_names(
    word: &str,
    components: (usize, usize),
    shares: Option<(f64, f64)>,
) -> (String, String) {
    let name = |k: usize, share: Option<f64>| match share {
        Some(share) if word == "component" => format!("PC{k} ({})", percent(share)),
        Some(share) => format!("{word} {k} ({})", percent(share)),
        None => format!("{word} {k}"),
    };
    (name(components.0, shares.map(|s| s.0)), name(components.1, shares.map(|s| s.1)))
}

/// Draws points and ellipses in a panel whose two axes have one scale, so that distances and angles mean
/// something. `also` are places that must be inside; `below` others, points are pale.
pub(crate) fn scatter(
    canvas: &mut Canvas,
    outer: Rect,
    n: &ScoresNumbers,
    also: &[(f64, f64)],
    below: bool,
) -> Panel {
    let inside: Vec<(f64, f64)> = reach(n).collect();
    let places = || inside.iter().chain(also).copied();
    let span = |of: fn((f64, f64)) -> f64| roomy(Scale::over(places().map(of), false).ends());
    let (x, y) = one_scale(outer, span(|q| q.0), span(|q| q.1));
    let (x_name, y_name) = names(n);
    let x = Axis::new(Scale::Linear { from: x.0, to: x.1 }, x_name);
    // Below a second axis, the name of the first stands above both.
    let y_name = if below {
        canvas.text((outer.x, outer.y - 12.0), &y_name, Font::default());
        String::new()
    } else {
        y_name
    };
    let y = Axis::new(Scale::Linear { from: y.0, to: y.1 }, y_name);
    let panel = Panel::new(canvas, outer, &x, &y);
    draw_rows(canvas, &panel, n, below);
    panel
}

/// Draws hexagons, or points and ellipses.
pub(crate) fn draw_rows(canvas: &mut Canvas, panel: &Panel, n: &ScoresNumbers, below: bool) {
    let p = canvas.palette();
    let values: Vec<f64> = n.points.iter().filter_map(|q| q.value).collect();
    let range = Scale::over(values.iter().copied(), false);
    let color = |group: Option<usize>, value: Option<f64>| match (group, value) {
        (Some(g), _) => look(n, p, g).0,
        (_, Some(v)) => p.sequential(0.25 + 0.75 * range.place(v)),
        // Under arrows, rows are the background.
        _ if values.is_empty() => p.main.towards(p.paper, if below { 0.3 } else { 0.0 }),
        _ => p.axis,
    };
    let series = |group: Option<usize>| group.map_or("", |g| n.groups[g].as_str());
    canvas.clipped(panel.area, |canvas| {
        if let Some(hexagons) = &n.hexagons {
            draw_hexagons(canvas, panel, hexagons);
        }
        let half = |half: (f64, f64)| (panel.px(half.0) - panel.px(0.0), panel.px(half.1) - panel.px(0.0));
        for e in &n.ellipses {
            let stroke = Stroke::new(color(e.group, None), 0.9).faint(0.6);
            canvas.labeled(series(e.group), "", |canvas| {
                canvas.ellipse(panel.at(e.center), half(e.half), -e.angle, stroke);
            });
        }
        let size = match n.points.len() {
            0..=400 => 3.2,
            401..=1500 => 2.5,
            _ => 1.9,
        };
        for q in &n.points {
            let kind = q.group.map_or(0, |g| look(n, p, g).1);
            canvas.labeled(series(q.group), &tip(n, q), |canvas| {
                canvas.mark(panel.at((q.x, q.y)), kind, size, color(q.group, q.value), q.n_gaps > 0);
            });
        }
        for e in &n.group_ellipses {
            let tip = format!("{}: {}", in_tip(&n.groups[e.group]), several(e.n_rows, "row"));
            let stroke = Stroke::new(color(Some(e.group), None), 1.4);
            canvas.labeled(series(Some(e.group)), &tip, |canvas| {
                canvas.ellipse(panel.at(e.center), half(e.half), -e.angle, stroke);
            });
        }
    });
}

/// Names rows, where they have names.
fn name_rows(canvas: &mut Canvas, panel: &Panel, n: &ScoresNumbers) {
    let labels: Vec<Label> = row_labels(panel, n);
    if labels.is_empty() {
        return;
    }
    let points: Vec<(f64, f64)> = n.points.iter().map(|q| panel.at((q.x, q.y))).collect();
    let muted = canvas.palette().muted;
    let places = placed(&labels, &points, &[], panel.area, 46.0);
    for (label, room) in labels.iter().zip(places) {
        if let Some(room) = room {
            draw_placed(canvas, label, room, Font::label(muted, Anchor::Start));
        }
    }
}

/// Names of rows that are to be placed: those furthest from the center first.
pub(crate) fn row_labels(panel: &Panel, n: &ScoresNumbers) -> Vec<Label> {
    let mut named: Vec<(&Point, &String)> =
        n.points.iter().filter_map(|q| Some((q, q.label.as_ref()?))).collect();
    let far = |q: &Point| q.x.hypot(q.y);
    named.sort_by(|a, b| far(b.0).total_cmp(&far(a.0)).then(a.0.row.cmp(&b.0.row)));
    named.truncate(if n.points.len() <= MOST_NAMES { MOST_NAMES } else { NAMES_OF_MANY });
    // Names that stand too close to each other name nothing.
    named.truncate((panel.area.w * panel.area.h / ROOM_OF_NAME) as usize);
    let texts: Vec<String> = named.iter().map(|(_, text)| (*text).clone()).collect();
    let label = |((q, _), text): ((&Point, &String), String)| Label {
        at: panel.at((q.x, q.y)),
        text,
        toward: (if q.x < 0.0 { -1.0 } else { 1.0 }, 0.0),
    };
    named.into_iter().zip(shortened(&texts, LABEL, 110.0)).map(label).collect()
}

/// Densities of one component above a rug of rows.
fn draw_densities(canvas: &mut Canvas, outer: Rect, n: &ScoresNumbers) {
    const RUG: f64 = 12.0;
    let p = canvas.palette();
    let lines = n.groups.len().max(1);
    let rug = 6.0 + (RUG + 2.0) * lines as f64;
    let curves = || n.densities.iter().flat_map(|d| d.curve.iter().copied());
    let across = curves().map(|c| c.0).chain(n.points.iter().map(|q| q.x));
    let x = Axis::new(Scale::over(across, false), names(n).0);
    let highest = curves().map(|c| c.1).fold(0.0, f64::max);
    let y = Axis::new(Scale::over([0.0, if highest > 0.0 { 1.04 * highest } else { 1.0 }], false), "density");
    // The rug stands between the curve and the axis.
    let panel = Panel::with_foot(canvas, outer, &x, &y, rug);
    let color = |group: Option<usize>| group.map_or(p.main, |g| look(n, p, g).0);
    for d in &n.densities {
        let series = d.group.map_or("", |g| n.groups[g].as_str());
        canvas.labeled(series, "", |canvas| {
            let curve: Vec<(f64, f64)> = d.curve.iter().map(|&c| panel.at(c)).collect();
            if n.densities.len() == 1 {
                let ends = [panel.at((d.curve[0].0, 0.0)), panel.at((d.curve[PLACES - 1].0, 0.0))];
                let area: Vec<(f64, f64)> =
                    [ends[0]].into_iter().chain(curve.iter().copied()).chain([ends[1]]).collect();
                canvas.polygon(&area, color(d.group), 0.15);
            }
            canvas.polyline(curve, Stroke::new(color(d.group), 1.8));
        });
    }
    let faint = if n.points.len() > 500 { 0.25 } else { 0.7 };
    let top = panel.area.bottom() + 6.0;
    for q in &n.points {
        let y = top + (RUG + 2.0) * q.group.unwrap_or(0) as f64;
        let series = q.group.map_or("", |g| n.groups[g].as_str());
        canvas.labeled(series, &tip(n, q), |canvas| {
            let stroke = Stroke::new(color(q.group), 1.0).faint(faint);
            canvas.line((panel.px(q.x), y), (panel.px(q.x), y + RUG), stroke);
        });
    }
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
pub(crate) fn tip(n: &ScoresNumbers, q: &Point) -> String {
    let second = (n.components.1 > 0).then(|| format!(", {}", number(q.y, 3)));
    let gaps = (q.n_gaps > 0).then(|| format!("; {}", several(q.n_gaps, "missing value")));
    let color = match (q.group, q.value) {
        (Some(g), _) => Some(format!("; {}", in_tip(&n.groups[g]))),
        (_, Some(v)) => Some(format!("; {}", number(v, 4))),
        _ => None,
    };
    let name = q.label.as_ref().map_or(String::new(), |label| format!("{}, ", in_tip(label)));
    let first = format!("{name}row {}: {}", q.row, number(q.x, 3));
    std::iter::once(first).chain([second, gaps, color].into_iter().flatten()).collect()
}

fn points_of(n: &ScoresNumbers) -> impl Iterator<Item = (f64, f64)> {
    n.points.iter().map(|q| (q.x, q.y))
}

/// The points, and corners around the ellipses and hexagons.
pub(crate) fn reach(n: &ScoresNumbers) -> impl Iterator<Item = (f64, f64)> {
    let groups = n.group_ellipses.iter().flat_map(|e| box_around(e.center, e.half, e.angle));
    let hexagons = n.hexagons.iter().flat_map(|h| h.cells.iter().map(|c| (c.0, c.1)));
    points_of(n).chain(n.ellipses.iter().flat_map(corners)).chain(groups).chain(hexagons)
}

/// Two corners of the box around an ellipse.
pub(crate) fn corners(e: &Ellipse) -> [(f64, f64); 2] {
    box_around(e.center, e.half, e.angle)
}

fn box_around(center: (f64, f64), half: (f64, f64), angle: f64) -> [(f64, f64); 2] {
    let (sin, cos) = angle.to_radians().sin_cos();
    let (x, y) = ((half.0 * cos).hypot(half.1 * sin), (half.0 * sin).hypot(half.1 * cos));
    [(center.0 - x, center.1 - y), (center.0 + x, center.1 + y)]
}

fn most_rows(hexagons: &Hexagons) -> f64 {
    hexagons.cells.iter().map(|c| c.2).max().unwrap_or(1).max(2) as f64
}

fn draw_hexagons(canvas: &mut Canvas, panel: &Panel, hexagons: &Hexagons) {
    const SHADES: usize = 12;
    let p = canvas.palette();
    let most = most_rows(hexagons).ln();
    let mut shades: Vec<Vec<(f64, f64)>> = vec![Vec::new(); SHADES];
    for &(x, y, n) in &hexagons.cells {
        // Even steps of the logarithm: single rows stay visible beside thousands.
        let shade = ((n as f64).ln() / most * (SHADES - 1) as f64).round() as usize;
        shades[shade.min(SHADES - 1)].push(panel.at((x, y)));
    }
    // A hair larger than they are, so that no paper shows between them.
    let side = 1.03 * (panel.px(hexagons.width) - panel.px(0.0)).abs() / 3f64.sqrt();
    for (k, centers) in shades.iter().enumerate() {
        canvas.hexagons(centers, side, p.sequential(0.15 + 0.85 * k as f64 / (SHADES - 1) as f64));
    }
}
