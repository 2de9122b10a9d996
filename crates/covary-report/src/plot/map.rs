//! Values on the globe.

use crate::layout::{Axis, Panel, Sheet, Words, color_bar, room};
use crate::scale::{Scale, Tick, count, number, several};
use crate::svg::{Canvas, Rect, Stroke};
use crate::{Error, Style, Svg};
use covary::Dataset;
use covary::learned::{Learned, Rows};
use covary::select::CheckedCell;
use serde::{Deserialize, Serialize};

/// Places drawn one by one; more are averaged over squares.
const MOST_PLACES: usize = 12_000;

/// A value at a place.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Place {
    /// Degrees north of the equator.
    pub latitude: f64,
    /// Degrees east, from −180 to 360.
    pub longitude: f64,
    /// The value.
    pub value: f64,
}

/// The numbers behind a map.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MapNumbers {
    /// Where the values come from.
    pub subject: String,
    /// What is shown.
    pub name: String,
    /// Places that were given, with or without a value.
    pub n_given: usize,
    /// Height and width of a place in degrees, if places lie on a grid.
    pub cell: Option<(f64, f64)>,
    /// Whether values were averaged over cells.
    pub averaged: bool,
    /// Whether coastlines are drawn.
    #[serde(default)]
    pub coast: bool,
    /// The places with a value.
    pub places: Vec<Place>,
}

/// Coastlines: longitude and latitude of their points in degrees.
fn coasts() -> impl Iterator<Item = Vec<(f64, f64)>> {
    include_str!("../../data/coast.txt").lines().map(|line| {
        let mut steps = line.split(' ').filter_map(|number| number.parse::<i32>().ok());
        let (mut at, mut points) = ((0, 0), Vec::new());
        while let (Some(east), Some(north)) = (steps.next(), steps.next()) {
            at = (at.0 + east, at.1 + north);
            points.push((f64::from(at.0) / 10.0, f64::from(at.1) / 10.0));
        }
        points
    })
}

/// Arranges places: finds the grid they lie on, and averages where they are too many to draw.
///
/// # Errors
/// [`Error::NoPlaces`] if no place is on the globe and has a value.
pub fn numbers(subject: &str, name: &str, given: &[Place]) -> Result<MapNumbers, Error> {
    let on_globe = |p: &&Place| {
        (-90.0..=90.0).contains(&p.latitude) && (-180.0..=360.0).contains(&p.longitude) && p.value.is_finite()
    };
    let mut places: Vec<Place> = given.iter().filter(on_globe).copied().collect();
    if places.is_empty() {
        return Err(Error::NoPlaces);
    }
    let mut cell = grid(&places);
    let averaged = places.len() > MOST_PLACES;
    if averaged {
        let (_, _, lat, lon) = extent(&places);
        let span = (lat.1 - lat.0).max(lon.1 - lon.0).max(1e-6);
        let side = span / 100.0;
        let mut sums = std::collections::BTreeMap::<(i64, i64), (f64, f64)>::new();
        for p in &places {
            let at = ((p.latitude / side).floor() as i64, (p.longitude / side).floor() as i64);
            let sum = sums.entry(at).or_default();
            *sum = (sum.0 + p.value, sum.1 + 1.0);
        }
        let center = |k: i64| (k as f64 + 0.5) * side;
        places = sums
            .into_iter()
            .map(|((a, o), (sum, n))| Place { latitude: center(a), longitude: center(o), value: sum / n })
            .collect();
        cell = Some((side, side));
    }
    Ok(MapNumbers {
        subject: subject.to_owned(),
        name: name.to_owned(),
        n_given: given.len(),
        cell,
        averaged,
        coast: false,
        places,
    })
}

/// A number of each column of a model, and what it is.
#[derive(Debug, Clone, PartialEq)]
pub struct OfColumns {
    /// What is shown.
    pub name: String,
    /// NaN for a column without one.
    pub values: Vec<f64>,
}

impl OfColumns {
    /// Loadings of a component, from 1.
    ///
    /// # Errors
    /// [`Error::NoSuchComponent`] for one that the model lacks; those of models without loadings.
    pub fn loadings(learned: &Learned, component: usize) -> Result<Self, Error> {
        let loadings = match learned.dynamic() {
            Ok(fit) => fit.model.loadings(),
            Err(_) => learned.linear()?.model.loadings(),
        };
        let has = learned.n_shown();
        if component == 0 || component > has {
            return Err(Error::NoSuchComponent { asked: component, has });
        }
        let word = super::component_word(learned);
        let name = format!("Loadings of {word} {component}, in the units of the columns");
        Ok(Self { name, values: loadings.column(component - 1) })
    }

    /// Root mean squared errors of hidden cells.
    pub fn errors(learned: &Learned, cells: &[CheckedCell]) -> Self {
        let squares = cells.iter().map(|cell| (cell.cell.column, (cell.cell.mean - cell.truth).powi(2)));
        let name = format!("Root mean squared error of {}", several(cells.len(), "held-out value"));
        Self { name, values: root_mean_squares(learned.columns.len(), squares) }
    }

    /// Standard deviations of what was imputed, root mean squared.
    ///
    /// # Errors
    /// Those of [`Learned::fill`].
    pub fn deviations(learned: &Learned, data: &Dataset) -> Result<Self, Error> {
        let cells = learned.fill(Rows::New)?.cells(data)?;
        let squares = cells.iter().map(|cell| (cell.column, cell.sd * cell.sd));
        let name = format!("Standard deviation of {}", several(cells.len(), "imputed value"));
        Ok(Self { name, values: root_mean_squares(learned.columns.len(), squares) })
    }
}

/// The root of the mean of what each column has; NaN for one that has nothing.
fn root_mean_squares(d: usize, squares: impl Iterator<Item = (usize, f64)>) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0); d];
    for (column, square) in squares {
        sums[column] = (sums[column].0 + square, sums[column].1 + 1.0);
    }
    sums.into_iter().map(|(sum, n): (f64, f64)| (sum / n).sqrt()).collect()
}

/// Latitude and longitude in the name of a column, such as `12.5N 77.5W`, `lat=-5,lon=120` or `-5_120`.
///
/// ```
/// use covary_report::plot::map::place_in_name;
/// assert_eq!(place_in_name("12.5N 77.5W"), Some((12.5, -77.5)));
/// assert_eq!(place_in_name("lat=-5,lon=120"), Some((-5.0, 120.0)));
/// assert_eq!((place_in_name("proline"), place_in_name("od280/od315")), (None, None));
/// ```
pub fn place_in_name(name: &str) -> Option<(f64, f64)> {
    let mut found = Vec::new();
    let mut rest = name;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let negative = rest[..start].ends_with(['-', '−']);
        let tail = &rest[start..];
        let end = tail.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(tail.len());
        let value: f64 = tail[..end].trim_end_matches('.').parse().ok()?;
        rest = &tail[end..];
        let side = rest.trim_start_matches(['°', ' ']).chars().next();
        let turned = negative || matches!(side, Some('S' | 's' | 'W' | 'w'));
        found.push(if turned { -value } else { value });
    }
    match found[..] {
        [latitude, longitude] if latitude.abs() <= 90.0 && (-180.0..=360.0).contains(&longitude) => {
            Some((latitude, longitude))
        }
        _ => None,
    }
}

type Ends = (f64, f64);

fn extent(places: &[Place]) -> (Vec<f64>, Vec<f64>, Ends, Ends) {
    let distinct = |of: fn(&Place) -> f64| {
        let mut values: Vec<f64> = places.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values
    };
    let (lats, lons) = (distinct(|p| p.latitude), distinct(|p| p.longitude));
    let ends = |v: &[f64]| (v[0], v[v.len() - 1]);
    let (lat, lon) = (ends(&lats), ends(&lons));
    (lats, lons, lat, lon)
}

/// Height and width of a cell, where latitudes and longitudes repeat in even steps.
fn grid(places: &[Place]) -> Option<(f64, f64)> {
    let (lats, lons, ..) = extent(places);
    let step = |v: &[f64]| {
        let steps = v.windows(2).map(|w| w[1] - w[0]);
        let least = steps.clone().fold(f64::INFINITY, f64::min);
        let even = |s: f64| ((s / least) - (s / least).round()).abs() < 0.02;
        (v.len() > 1 && steps.clone().all(even)).then_some(least)
    };
    let (tall, wide) = (step(&lats)?, step(&lons)?);
    let cells = lats.len() * lons.len();
    // Rows and columns of a grid have several places; stations share a latitude by accident.
    let shared = places.len() >= 2 * lats.len().max(lons.len());
    (shared && cells <= 30 * places.len()).then_some((tall, wide))
}

/// Ends of the map, and its width over its height.
struct Frame {
    latitude: Ends,
    longitude: Ends,
    aspect: f64,
}

fn frame(n: &MapNumbers) -> Frame {
    let (tall, wide) = n.cell.unwrap_or((0.0, 0.0));
    let (_, _, lat, lon) = extent(&n.places);
    let room = if n.cell.is_some() { 0.0 } else { 0.04 * (lat.1 - lat.0).max(lon.1 - lon.0).max(0.1) };
    let (south, north) = ((lat.0 - 0.5 * tall - room).max(-90.0), (lat.1 + 0.5 * tall + room).min(90.0));
    let (west, east) = (lon.0 - 0.5 * wide - room, lon.1 + 0.5 * wide + room);
    // Near the middle a degree is as long to the east as to the north.
    let shape = (0.5 * (south + north)).to_radians().cos().max(0.3);
    let aspect = ((east - west) * shape / (north - south)).clamp(0.4, 3.2);
    Frame { latitude: (south, north), longitude: (west, east), aspect }
}

/// Room beside a map for its axis and its bar, and above and below it.
const BESIDE: f64 = 114.0;
const AROUND: f64 = 70.0;

/// Height that a panel of a map needs at this width.
pub(crate) fn panel_height(n: &MapNumbers, wide: f64) -> f64 {
    (wide - BESIDE) / frame(n).aspect + AROUND
}

/// Draws them: cells of the grid, or points.
pub fn draw(numbers: &MapNumbers, style: &Style) -> Svg {
    let n = numbers;
    let mut note: Vec<String> = Vec::new();
    if n.averaged {
        note.push(format!(
            "{} are averaged over squares of {} degrees.",
            several(n.n_given, "place"),
            number(n.cell.unwrap_or_default().0, 2)
        ));
    } else if n.places.len() < n.n_given {
        note.push(format!(
            "{} of {} places have a value on the globe.",
            count(n.places.len()),
            count(n.n_given)
        ));
    }
    let map_wide = (430.0 * frame(n).aspect).clamp(300.0, 760.0);
    let wide = map_wide + BESIDE;
    let mut sheet = Sheet::new(
        style,
        (wide + 36.0, panel_height(n, room(style, wide + 36.0))),
        &Words { title: &n.name, subtitle: &n.subject, note: &note.join(" ") },
    );
    let body = sheet.body;
    panel(&mut sheet.canvas, body, n, None);
    sheet.finish()
}

/// Draws the coasts between two meridians, which may be counted from Greenwich or from the other side.
fn draw_coasts(canvas: &mut Canvas, panel: &Panel, (west, east): (f64, f64)) {
    let stroke = Stroke::new(canvas.palette().muted, 0.8);
    let lines: Vec<Vec<(f64, f64)>> = coasts().collect();
    for turn in [-360.0, 0.0, 360.0] {
        let inside = |x: f64| (west - 5.0..=east + 5.0).contains(&(x + turn));
        for line in lines.iter().filter(|line| line.iter().any(|(x, _)| inside(*x))) {
            canvas.polyline(line.iter().map(|&(x, y)| panel.at((x + turn, y))), stroke);
        }
    }
}

/// Both ends, and zero if it is between them and not close to one; else the middle.
fn bar_ticks(low: f64, high: f64, tall: f64) -> Vec<(f64, String)> {
    let zero = -low / (high - low);
    let apart = 14.0 / tall;
    let mut ticks = vec![(0.0, number(low, 2)), (1.0, number(high, 2))];
    if zero <= 0.0 || zero >= 1.0 {
        ticks.push((0.5, number(0.5 * (low + high), 2)));
    } else if zero > apart && zero < 1.0 - apart {
        ticks.push((zero, "0".to_owned()));
    }
    ticks
}

/// Draws a map with its axes and the bar of its colors, which end at `full`, or at the largest value.
pub(crate) fn panel(canvas: &mut Canvas, body: Rect, n: &MapNumbers, full: Option<f64>) {
    let p = canvas.palette();
    let Frame { latitude: (south, north), longitude: (west, east), .. } = frame(n);
    let degrees = |scale: Scale, sides: [&str; 2], room: f64| -> Vec<Tick> {
        let word = |v: f64| {
            let v = if v > 180.0 { v - 360.0 } else { v };
            let side = if v < 0.0 {
                sides[1]
            } else if v > 0.0 {
                sides[0]
            } else {
                ""
            };
            format!("{}°{side}", number(v.abs(), 5))
        };
        scale
            .ticks((room / 90.0).clamp(3.0, 6.0) as usize)
            .into_iter()
            .map(|t| Tick { text: word(t.value), ..t })
            .collect()
    };
    let (x_scale, y_scale) =
        (Scale::Linear { from: west, to: east }, Scale::Linear { from: south, to: north });
    let x = Axis {
        ticks: Some(degrees(x_scale, ["E", "W"], body.w)),
        grid: false,
        ..Axis::new(x_scale, "longitude")
    };
    let y = Axis {
        ticks: Some(degrees(y_scale, ["N", "S"], body.h)),
        grid: false,
        ..Axis::new(y_scale, "latitude")
    };
    let panel = Panel::new(canvas, Rect { w: body.w - 64.0, ..body }, &x, &y);
    let values = || n.places.iter().map(|q| q.value);
    let (low, high) = Scale::over(values(), false).ends();
    // Warm is red and cold is blue; the bar ends where the data do, unless panels share their ends.
    let signed = low < 0.0 && high > 0.0;
    let (low, high) = match full {
        Some(full) => (if signed { -full } else { 0.0 }, full),
        None => (low, high),
    };
    let largest = low.abs().max(high.abs());
    let share = |v: f64| (v - low) / (high - low);
    let color = |s: f64| {
        if signed { p.thermal((low + s * (high - low)) / largest) } else { p.sequential(0.12 + 0.88 * s) }
    };
    // Land, or whatever was not measured on a grid, is the color of a gap.
    match n.cell {
        Some(_) => canvas.rect(panel.area, p.gap),
        None => canvas.frame(panel.area, None, Stroke::new(p.grid, 1.0)),
    }
    canvas.clipped(panel.area, |canvas| {
        // Below places that are points, above those that are cells.
        if n.coast && n.cell.is_none() {
            draw_coasts(canvas, &panel, (west, east));
        }
        if let Some((tall, wide)) = n.cell {
            let mut shades = std::collections::BTreeMap::<u32, Vec<Rect>>::new();
            for q in &n.places {
                let (x0, y0) = panel.at((q.longitude - 0.5 * wide, q.latitude + 0.5 * tall));
                let (x1, y1) = panel.at((q.longitude + 0.5 * wide, q.latitude - 0.5 * tall));
                let cell = Rect { x: x0, y: y0, w: x1 - x0, h: y1 - y0 };
                shades.entry((share(q.value).clamp(0.0, 1.0) * 64.0).round() as u32).or_default().push(cell);
            }
            for (shade, cells) in shades {
                canvas.cells(&cells, color(f64::from(shade) / 64.0));
            }
            if n.coast {
                draw_coasts(canvas, &panel, (west, east));
            }
        } else {
            let size = match n.places.len() {
                0..100 => 6.0,
                100..1000 => 4.0,
                _ => 2.0,
            };
            // Smaller on a small map, where they would cover each other and the coast.
            let size = size * (panel.area.w / 440.0).clamp(0.5, 1.0);
            for q in &n.places {
                // Opaque, so that colors are those of the bar, with a rim, so that pale ones are seen.
                let place =
                    format!("{}, {}: {}", number(q.latitude, 4), number(q.longitude, 5), number(q.value, 3));
                canvas.labeled("", &place, |canvas| {
                    let stroke = Stroke::new(p.ink, 0.8);
                    canvas.disc(panel.at((q.longitude, q.latitude)), size, color(share(q.value)), stroke);
                });
            }
        }
    });
    let faint = Stroke::new(p.ink, 0.6).faint(0.14);
    for tick in x.ticks.iter().flatten() {
        canvas.line((panel.px(tick.value), panel.area.y), (panel.px(tick.value), panel.area.bottom()), faint);
    }
    for tick in y.ticks.iter().flatten() {
        canvas.line((panel.area.x, panel.py(tick.value)), (panel.area.right(), panel.py(tick.value)), faint);
    }
    let bar = Rect { x: panel.area.right() + 14.0, y: panel.area.y, w: 11.0, h: panel.area.h.min(260.0) };
    color_bar(canvas, bar, color, &bar_ticks(low, high, bar.h));
}

#[cfg(test)]
mod tests {
    use super::coasts;

    /// Degrees between a place and the nearest point of a coast.
    fn away(longitude: f64, latitude: f64) -> f64 {
        let points = coasts().flatten();
        points.map(|(x, y)| (x - longitude).hypot(y - latitude)).fold(f64::INFINITY, f64::min)
    }

    #[test]
    fn coasts_are_where_they_are() {
        assert!(coasts().all(|coast| coast.len() > 1));
        assert!(coasts().flatten().all(|(x, y)| x.abs() <= 180.0 && y.abs() <= 90.0));
        // The Cape of Good Hope, Lisbon, San Francisco and Tokyo lie at the sea; Moscow and the middle of the Pacific do not.
        for (longitude, latitude) in [(18.5, -34.3), (-9.2, 38.7), (-122.5, 37.8), (139.8, 35.6)] {
            assert!(away(longitude, latitude) < 1.5, "{longitude} {latitude}");
        }
        assert!(away(37.6, 55.8) > 5.0 && away(-130.0, 0.0) > 15.0);
    }
}
