//! Figure 14 with time: the four real masks for ten years each, and in turns over all months, filled by models whose months may be
//! shuffled and by dynamic factors, as the plain command does: `covary impute --model …`, for dynamic factors with `--time month --season 12
//! --harmonics 1 --components 30`.

use super::sea::{Errors, FIRST_YEAR, MASKS, N_MONTHS, NEEDS, Sea, VALIDATION};
use super::sea_steps::COMPONENTS;
use crate::{Comparison, Error, Exhibit, Findings, Part, Row, Run};
use covary::dynamics::Timeline;
use covary::family::{Components, Family, ForFilling, MOST_OFFERED, Request};
use covary::learned::Rows;
use covary::model::FilledCell;
use covary_report::chart::{Axis, Chart, Curves, Look, Panel, Series, fixed};
use covary_report::plot::map;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "chen-2018-fig-14-in-time",
    source: "Chen, Du & Vuyyuru 2018, figure 14, with time",
    title: "Sea-surface temperature behind real masks: dynamic factors beside PCA, PPCA, Bayesian PCA and climatology",
    needs: NEEDS,
    make,
};

/// A quick look takes the masks in turns, one cell in this many, and so few components.
const QUICK_CELLS: usize = 6;
const QUICK: usize = 8;

/// Ways to fill the table.
struct Way {
    name: &'static str,
    family: Family,
    n_components: usize,
}

const WAYS: [Way; 4] = [
    Way { name: "EM-PCA", family: Family::Pca, n_components: COMPONENTS },
    Way { name: "PPCA", family: Family::Ppca, n_components: COMPONENTS },
    Way { name: "Bayesian PCA", family: Family::Bpca, n_components: MOST_OFFERED },
    Way { name: "dynamic factors", family: Family::Dfm, n_components: MOST_OFFERED },
];
const SEASON: (&str, &str) = ("season", "12:1");
const BAYES: usize = 2;
const IN_TIME: usize = 3;

/// Basins, by longitude where the sea is between 60° S and 60° N; each cell is in one of them.
const BASINS: [&str; 5] = ["Atlantic", "Indian", "Pacific", "north of 60° N", "south of 60° S"];

fn basin(latitude: f64, longitude: f64) -> usize {
    match (latitude, longitude) {
        (60.0.., _) => 3,
        (..-60.0, _) => 4,
        // The isthmus of America lies farther east in the south.
        (lat, -100.0..20.0) if lat > 15.0 || longitude > -68.0 => 0,
        (_, -80.0..20.0) if (latitude > 8.0 || longitude > -68.0) => 0,
        (lat, 20.0..100.0) => usize::from(lat <= 30.0),
        (lat, 100.0..147.0) if lat < -10.0 => 1,
        _ => 2,
    }
}

/// What is hidden.
struct Setting {
    name: &'static str,
    /// Cells that some month shows.
    sea: Sea,
    /// For each way, the hidden cells of 1982–1991.
    filled: Vec<Vec<FilledCell>>,
}

impl Setting {
    fn errors(&self, way: usize) -> Result<Errors, Error> {
        Errors::of(&self.sea, self.filled[way].iter())
    }

    fn months(&self, way: usize) -> Result<Vec<Errors>, Error> {
        let month = |i: usize| Errors::of(&self.sea, self.filled[way].iter().filter(|c| c.row == i));
        VALIDATION.map(month).collect()
    }
}

fn make(run: &Run) -> Result<Findings, Error> {
    let mut whole = Sea::read(run.data)?.unweighted();
    if run.most_repeats.is_some() {
        whole = whole.of_cells(&(0..whole.n_cells()).step_by(QUICK_CELLS).collect::<Vec<_>>());
    }
    let mut rng = ChaCha8Rng::seed_from_u64(run.seed);
    let turns: Vec<usize> = (0..N_MONTHS).map(|_| rng.random_range(0..MASKS.len())).collect();
    let mut settings = Vec::new();
    for k in (0..=MASKS.len()).rev().take(run.repeats(MASKS.len() + 1)) {
        let in_turns = k == MASKS.len();
        let seen = |j: usize| !in_turns || whole.hidden.iter().any(|h| !h[j]);
        let sea = whole.of_cells(&(0..whole.n_cells()).filter(|&j| seen(j)).collect::<Vec<_>>());
        let table = sea.table(0..N_MONTHS, |i, j| {
            if in_turns { sea.hidden[turns[i]][j] } else { VALIDATION.contains(&i) && sea.hidden[k][j] }
        })?;
        let name = if in_turns { "masks in turns" } else { MASKS[k].name };
        let filled = run.each(name, WAYS.len(), |way| {
            let Way { family, n_components, .. } = &WAYS[way];
            let quick = run.most_repeats.is_some().then_some(QUICK);
            let in_time = (*family == Family::Dfm).then(|| (SEASON.0.to_owned(), SEASON.1.to_owned()));
            let request = Request {
                n_components: Some(Components::Number(quick.unwrap_or(*n_components))),
                options: in_time.into_iter().collect(),
                filling: Some(ForFilling { choose: false, ..ForFilling::default() }),
                ..Request::new(*family)
            };
            let table = table.clone().in_time(Timeline::regular(N_MONTHS))?;
            let filled = request.learn(&table)?.fill(Rows::Training)?.fill(&table)?;
            Ok(filled.cells().iter().filter(|c| VALIDATION.contains(&c.row)).cloned().collect())
        })?;
        settings.push(Setting { name, sea, filled });
    }
    settings.reverse();
    let maps = maps_chart(settings.last().expect("masks in turns"))?;
    Ok(Findings {
        charts: vec![months_chart(&settings)?, coverage_chart(&settings)?, maps],
        tables: vec![errors_table(&settings)?, beside_table(&settings)?, basins_table(&settings)?],
        notes: vec![
            format!(
                "{} cells. Anomalies from the climatology of 1951–1980; a mask hides the same cells in each month of 1982–1991, or the four take turns at random over all months. EM-PCA and PPCA have {COMPONENTS} components, the others {MOST_OFFERED}, what the command offers Bayesian PCA; dynamic factors whose number is left open are offered 60, which takes longer. Intervals are calibrated, as the command does, on cells hidden as the gaps lie.",
                whole.n_cells()
            ),
            "Errors behind these masks had been seen when it was decided that tables with few rows take the loadings of a Bayesian PCA and how many factors it is offered: this is no confirmation of these rules. What has been changed since (the posterior of the loadings in the filter, noise that remembers, priors of transition and season) was found on other cells, decades and masks.".to_owned(),
        ],
    })
}

fn errors_table(settings: &[Setting]) -> Result<Comparison, Error> {
    let mut rows = Vec::new();
    for setting in settings {
        let mut parts = Vec::new();
        for (way, Way { name, .. }) in WAYS.iter().enumerate() {
            let found = setting.errors(way)?;
            let ours = format!("{}, {} %", fixed(found.rmse, 3), fixed(100.0 * found.covered[2], 0));
            let below = found.rmse < found.climatology;
            parts.push(Part::new(name, &fixed(found.climatology, 3), &ours, below));
        }
        let row = Row::of_parts(setting.name, parts);
        rows.push(row.why("few of the cells that were seen tell of the hidden ones"));
    }
    Ok(Comparison::with(
        "climatology, to be below it",
        "Root mean squared errors of hidden cells 1982–1991, °C, and coverage of 95 % intervals",
        rows,
    ))
}

/// As many components, by rows one at a time and by rows in time.
fn beside_table(settings: &[Setting]) -> Result<Comparison, Error> {
    let mut rows = Vec::new();
    for setting in settings {
        let (bayes, in_time) = (setting.errors(BAYES)?, setting.errors(IN_TIME)?);
        let said = |e: &Errors| format!("{} °C, {} %", fixed(e.rmse, 3), fixed(100.0 * e.covered[2], 0));
        let row = Row::claim(
            &format!("dynamic factors, {}", setting.name),
            &said(&bayes),
            &said(&in_time),
            in_time.rmse <= bayes.rmse,
        );
        rows.push(row.why(WHY_NOT));
    }
    Ok(Comparison::with("Bayesian PCA", "Errors and coverage of 95 % intervals, as many components", rows))
}

/// Where time does not help.
const WHY_NOT: &str = "where a mask stays for ten years, the months before and after say little that is new";

fn basins_table(settings: &[Setting]) -> Result<Comparison, Error> {
    let mut rows = Vec::new();
    for (b, name) in BASINS.iter().enumerate() {
        let (mut n, mut sums, mut covered) = (0.0, [0.0; 3], [0.0; 2]);
        for setting in settings {
            for (k, way) in [BAYES, IN_TIME].into_iter().enumerate() {
                let sea = &setting.sea;
                let inside = |c: &&FilledCell| basin(sea.latitude[c.column], sea.longitude[c.column]) == b;
                if setting.filled[way].iter().any(|c| inside(&c)) {
                    let found = Errors::of(sea, setting.filled[way].iter().filter(inside))?;
                    let cells = found.n as f64;
                    sums[k] += cells * found.rmse.powi(2);
                    covered[k] += cells * found.covered[2];
                    if k == 0 {
                        sums[2] += cells * found.climatology.powi(2);
                        n += cells;
                    }
                }
            }
        }
        if n > 0.0 {
            let rmse = |k: usize| fixed((sums[k] / n).sqrt(), 3);
            let cover = |k: usize| fixed(100.0 * covered[k] / n, 0);
            rows.push(
                Row::claim(
                    &format!("dynamic factors, {name}"),
                    &format!("{} °C, {} %", rmse(0), cover(0)),
                    &format!("{} °C, {} %; climatology {} °C", rmse(1), cover(1), rmse(2)),
                    sums[1] <= sums[0],
                )
                .why(WHY_NOT),
            );
        }
    }
    Ok(Comparison::with("Bayesian PCA", "Errors and coverage of 95 % intervals by basin, all masks", rows))
}

/// The middle of a month of the validation, in years.
fn year(k: usize) -> f64 {
    FIRST_YEAR as f64 + ((VALIDATION.start + k) as f64 + 0.5) / 12.0
}

fn months_chart(settings: &[Setting]) -> Result<Chart, Error> {
    let mut panels = Vec::new();
    let (mut better, mut all) = (0, 0);
    for setting in settings {
        let (bayes, in_time) = (setting.months(BAYES)?, setting.months(IN_TIME)?);
        let curve = |months: &[Errors], of: fn(&Errors) -> f64| {
            months.iter().enumerate().map(|(k, m)| (year(k), of(m))).collect::<Vec<_>>()
        };
        better += in_time.iter().filter(|m| m.rmse < m.climatology).count();
        all += in_time.len();
        let series = vec![
            Series::new("climatology", Look::Line, curve(&in_time, |m| m.climatology)).color(6),
            Series::new("Bayesian PCA", Look::Line, curve(&bayes, |m| m.rmse)).color(1),
            Series::new("dynamic factors", Look::Line, curve(&in_time, |m| m.rmse)),
        ];
        let x = Axis::new("").between(1982.0, 1992.0);
        let y = Axis::new("root mean squared error, °C").between(0.0, 1.0);
        panels.push(Panel::curves(setting.name, Curves { x, y, series }));
    }
    Ok(Chart {
        title: format!("Dynamic factors are better than climatology in {better} of {all} months"),
        subtitle: "Hidden cells of COBE-SST2, month by month".to_owned(),
        note: String::new(),
        across: 2,
        panels,
    })
}

fn coverage_chart(settings: &[Setting]) -> Result<Chart, Error> {
    let (mut panels, mut covered, mut cells) = (Vec::new(), 0.0, 0.0);
    for setting in settings {
        let curve = |way: usize| -> Result<Vec<(f64, f64)>, Error> {
            let months = setting.months(way)?;
            Ok(months.iter().enumerate().map(|(k, m)| (year(k), 100.0 * m.covered[2])).collect())
        };
        let all = setting.errors(IN_TIME)?;
        covered += all.n as f64 * all.covered[2];
        cells += all.n as f64;
        let series = vec![
            Series::new("95 %", Look::Dashed, vec![(1982.0, 95.0), (1992.0, 95.0)]).color(6),
            Series::new("Bayesian PCA", Look::Line, curve(BAYES)?).color(1),
            Series::new("dynamic factors", Look::Line, curve(IN_TIME)?),
        ];
        let x = Axis::new("").between(1982.0, 1992.0);
        let y = Axis::new("cells within their interval, %").between(0.0, 100.0);
        panels.push(Panel::curves(setting.name, Curves { x, y, series }));
    }
    Ok(Chart {
        title: format!(
            "95 % intervals of dynamic factors cover {} % of the hidden cells",
            fixed(100.0 * covered / cells, 0)
        ),
        subtitle: "Hidden cells of COBE-SST2, month by month".to_owned(),
        note: String::new(),
        across: 2,
        panels,
    })
}

/// Of the last month, and over all months.
fn maps_chart(setting: &Setting) -> Result<Chart, Error> {
    let (sea, cells) = (&setting.sea, &setting.filled[IN_TIME]);
    let last = cells.iter().map(|c| c.row).max().unwrap_or(N_MONTHS - 1);
    let of = |j: usize| cells.iter().find(|c| c.row == last && c.column == j);
    let by_cell = |j: usize| {
        let own: Vec<&FilledCell> = cells.iter().filter(|c| c.column == j).collect();
        if own.is_empty() { Ok(None) } else { Errors::of(sea, own.into_iter()).map(|e| Some(e.rmse)) }
    };
    let rmse = (0..sea.n_cells()).map(by_cell).collect::<Result<Vec<_>, Error>>()?;
    let truth = |j: usize| sea.anomalies[(last, j)];
    let panel = |title: &str, value: &dyn Fn(usize) -> Option<f64>| -> Result<Panel, Error> {
        Ok(Panel::map(title, map::numbers("", title, &sea.map(value))?, None))
    };
    Ok(Chart {
        title: "What was filled, how far off, and how certainly".to_owned(),
        subtitle: format!("Dynamic factors, {}, °C against 1951–1980", setting.name),
        note: "The first three maps are of December 1991, the last of 1982–1991.".to_owned(),
        across: 2,
        panels: vec![
            panel("filled, with what was seen", &|j| Some(of(j).map_or(truth(j), |c| c.mean)))?,
            panel("error of hidden cells", &|j| of(j).map(|c| c.mean - truth(j)))?,
            panel("stated standard deviation", &|j| of(j).map(|c| c.sd))?,
            panel("root mean squared error of ten years", &|j| rmse[j])?,
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_in_their_basins() {
        for (latitude, longitude, name) in [
            (32.5, -62.5, "Atlantic"),
            (-32.5, -12.5, "Atlantic"),
            (22.5, -92.5, "Atlantic"),
            (37.5, 22.5, "Atlantic"),
            (12.5, -92.5, "Pacific"),
            (2.5, -82.5, "Pacific"),
            (-32.5, -77.5, "Pacific"),
            (2.5, 152.5, "Pacific"),
            (22.5, 122.5, "Pacific"),
            (-22.5, -152.5, "Pacific"),
            (-12.5, 72.5, "Indian"),
            (-32.5, 112.5, "Indian"),
            (72.5, 12.5, "north of 60° N"),
            (-62.5, 12.5, "south of 60° S"),
        ] {
            assert_eq!(BASINS[basin(latitude, longitude)], name, "{latitude} {longitude}");
        }
    }
}
