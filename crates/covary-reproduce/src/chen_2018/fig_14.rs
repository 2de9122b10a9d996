//! Figure 14: errors of recovered sea-surface temperature, month by month, against climatology.

use super::sea::{
    Errors, FIRST_YEAR, LEVELS, MASKS, Mask, NEEDS, Recovered, Sea, Spectra, VALIDATION, WHY, recover,
};
use super::sea_steps;
use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::model::FilledCell;
use covary_report::chart::{Axis, Chart, Curves, Look, Panel, Series, fixed};
use covary_report::plot::map;
use std::ops::Range;

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "chen-2018-fig-14",
    source: "Chen, Du & Vuyyuru 2018, figure 14",
    title: "Errors of recovered sea-surface temperature against climatology, four real masks",
    needs: NEEDS,
    make,
};

/// Curves of the paper, read off to ± 0.005, in its units √Σ²/N: from, to.
const CLIMATOLOGY: (f64, f64) = (0.018, 0.028);
const PPCA: (f64, f64) = (0.055, 0.14);
const BPCA: (f64, f64) = (0.13, 0.18);

/// What is known of one mask.
struct Behind {
    recovered: Recovered,
    all: Errors,
    months: Vec<Errors>,
}

fn make(run: &Run) -> Result<Findings, Error> {
    let sea = Sea::read(run.data)?;
    let spectra = Spectra::new(&sea)?;
    let mut masks = Vec::new();
    for k in 0..run.repeats(MASKS.len()) {
        let recovered = recover(run, &sea, &spectra, k)?;
        let months = recovered.by(VALIDATION.len(), |c| c.row - VALIDATION.start);
        let months = months.iter().map(|m| Errors::of(&sea, m.iter())).collect::<Result<Vec<_>, _>>()?;
        masks.push(Behind { all: Errors::of(&sea, recovered.cells.iter())?, months, recovered });
    }
    let of_masks: Vec<_> = masks.iter().map(|m| (&m.recovered, m.all.climatology)).collect();
    Ok(Findings {
        charts: vec![months_chart(&masks), maps_chart(&sea, &masks)?],
        tables: vec![
            paper_table(&masks),
            sea_steps::table(run, &sea, &spectra, &of_masks)?,
            baseline_table(&masks),
            coverage_table(&sea, &masks)?,
        ],
        notes: vec![
            "COBE-SST2 is itself a smooth analysis: some 160 components explain 99.5 % of its variance. Raw \
             observations would be harder. And the months 1951–1981 are complete, which the paper's were not: \
             chen-2018-fig-14-all-months has gaps in every month."
                .to_owned(),
            "The family of models was chosen after seeing these errors; only the floor of the noise, and with \
             it the number of components, is chosen without them, by hiding the decades before 1982."
                .to_owned(),
        ],
    })
}

/// The paper's units are its own; whether climatology is better is not a matter of units.
fn paper_table(masks: &[Behind]) -> Comparison {
    let ratios: Vec<f64> = masks.iter().flat_map(|m| &m.months).map(|m| m.rmse / m.climatology).collect();
    let below = ratios.iter().filter(|r| **r < 1.0).count();
    let (low, high) = ratios.iter().fold((f64::INFINITY, 0.0_f64), |(l, h), r| (l.min(*r), h.max(*r)));
    let ours = format!(
        "{} to {} times climatology's, below it in {below} of {} months",
        fixed(low, 2),
        fixed(high, 2),
        ratios.len()
    );
    let row = |(name, curve): (&str, (f64, f64))| {
        let paper = format!(
            "{}–{} where climatology has {}–{} (√Σ²/N, read off ± 0.005)",
            curve.0, curve.1, CLIMATOLOGY.0, CLIMATOLOGY.1
        );
        Row::claim(&format!("error of {name}"), &paper, &ours, below == 0).why(WHY)
    };
    Comparison::with_paper(
        "Months 1982–1991, all masks",
        [("PCA = PPCA", PPCA), ("BPCA", BPCA)].map(row).to_vec(),
    )
}

fn baseline_table(masks: &[Behind]) -> Comparison {
    let rows = masks.iter().zip(&MASKS).flat_map(|(behind, mask)| {
        let (all, found) = (&behind.all, &behind.recovered);
        let n_cells = all.n / VALIDATION.len();
        let quantity = format!("ours, {}, {n_cells} cells hidden", mask.name);
        let ours = format!("{} (q = {}, floor {})", fixed(all.rmse, 3), found.n_components, found.floor);
        let words = format!("EM-PCA {}; to be below it", fixed(mask.baseline, 3));
        [
            Row::printed(&format!("climatology, {}", mask.name), mask.climatology, all.climatology),
            Row::claim(&quantity, &words, &ours, all.rmse < mask.baseline)
                .why("without EM, or with a floor that suits another mask"),
        ]
    });
    Comparison::with("baseline", "Root mean squared errors of hidden cells, °C", rows.collect())
}

/// Belts of latitude, from north to south.
const BELTS: [(&str, f64, f64); 6] = [
    ("60–90° N", 60.0, 90.0),
    ("30–60° N", 30.0, 60.0),
    ("0–30° N", 0.0, 30.0),
    ("0–30° S", -30.0, 0.0),
    ("30–60° S", -60.0, -30.0),
    ("60–90° S", -90.0, -60.0),
];

/// How much larger the truth is in the months recovered than in those before.
fn growth(sea: &Sea, inside: impl Fn(usize) -> bool) -> f64 {
    let square = |months: Range<usize>| {
        let cells = || (0..sea.n_cells()).filter(|&j| inside(j));
        let sum: f64 =
            months.clone().map(|i| cells().map(|j| sea.anomalies[(i, j)].powi(2)).sum::<f64>()).sum();
        sum / months.len() as f64
    };
    (square(VALIDATION) / square(0..VALIDATION.start)).sqrt()
}

fn coverage_table(sea: &Sea, masks: &[Behind]) -> Result<Comparison, Error> {
    let mut rows = Vec::new();
    // Months are not independent: a few hundredths either way is what ten years can tell.
    let row = |quantity: String, level: f64, share: f64, why: &str| {
        Row::reference(&quantity, 100.0 * level, 3.0, 100.0 * share, 1).why(why)
    };
    for (behind, mask) in masks.iter().zip(&MASKS) {
        let south = behind.recovered.cells.iter().filter(|c| sea.latitude[c.column] < -30.0).count();
        let share = 100.0 * south as f64 / behind.all.n as f64;
        let why = format!("{} % of its hidden cells lie south of 30° S; see below", fixed(share, 0));
        for (level, share) in LEVELS.iter().zip(behind.all.covered) {
            rows.push(row(format!("{} %, {}", 100.0 * level, mask.name), *level, share, &why));
        }
    }
    for (name, south, north) in BELTS {
        let inside = |j: usize| (south..north).contains(&sea.latitude[j]);
        let cells = masks.iter().flat_map(|m| &m.recovered.cells).filter(|c| inside(c.column));
        let belt = Errors::of(sea, cells)?;
        let why = format!(
            "anomalies of COBE-SST2 are here {} times as large in 1982–1991 as in the decades before, from which \
             deviations are learned",
            fixed(growth(sea, inside), 1)
        );
        rows.push(row(format!("95 %, {name}, all masks"), LEVELS[2], belt.covered[2], &why));
    }
    Ok(Comparison::with("stated", "Hidden cells inside their intervals, %", rows))
}

fn months_chart(masks: &[Behind]) -> Chart {
    let year = |k: usize| FIRST_YEAR as f64 + ((VALIDATION.start + k) as f64 + 0.5) / 12.0;
    let most = masks.iter().flat_map(|m| &m.months).map(|m| m.rmse.max(m.climatology)).fold(0.0, f64::max);
    let top = (10.0 * most).ceil() / 10.0;
    let panel = |(behind, mask): (&Behind, &Mask)| {
        let curve = |of: fn(&Errors) -> f64| {
            behind.months.iter().enumerate().map(|(k, m)| (year(k), of(m))).collect::<Vec<_>>()
        };
        let series = vec![
            Series::new("climatology", Look::Line, curve(|m| m.climatology)).color(6),
            Series::new("recovered", Look::Line, curve(|m| m.rmse)),
        ];
        let title = format!("{}, {} cells hidden", mask.name, behind.all.n / VALIDATION.len());
        let x = Axis::new("").between(1982.0, 1992.0);
        let y = Axis::new("root mean squared error, °C").between(0.0, top);
        Panel::curves(&title, Curves { x, y, series })
    };
    let months = || masks.iter().flat_map(|m| &m.months);
    let (better, all) = (months().filter(|m| m.rmse < m.climatology).count(), months().count());
    Chart {
        title: format!("{better} of {all} months recovered better than by climatology"),
        subtitle: "Hidden cells of COBE-SST2 behind four real maps of where ships went".to_owned(),
        note: String::new(),
        across: 2,
        panels: masks.iter().zip(&MASKS).map(panel).collect(),
    }
}

fn maps_chart(sea: &Sea, masks: &[Behind]) -> Result<Chart, Error> {
    let of_cell = |cells: &Vec<FilledCell>| {
        if cells.is_empty() { Ok(None) } else { Ok(Some(Errors::of(sea, cells.iter())?.rmse)) }
    };
    let mut by_cell = Vec::new();
    for behind in masks {
        let cells = behind.recovered.by(sea.n_cells(), |c| c.column);
        by_cell.push(cells.iter().map(of_cell).collect::<Result<Vec<_>, Error>>()?);
    }
    let largest = by_cell.iter().flatten().flatten().fold(0.0_f64, |m, e| m.max(*e));
    let panels = by_cell.iter().zip(masks).zip(&MASKS).map(|((errors, behind), mask)| {
        let title = format!("{}: {} °C", mask.name, fixed(behind.all.rmse, 3));
        Ok(Panel::map(&title, map::numbers("", &title, &sea.map(|j| errors[j]))?, Some(largest)))
    });
    Ok(Chart {
        title: "Where the errors are".to_owned(),
        subtitle: "Root mean squared error of each hidden cell over 1982–1991, °C".to_owned(),
        note: "Gray: land, and cells that the mask leaves visible.".to_owned(),
        across: 2,
        panels: panels.collect::<Result<_, Error>>()?,
    })
}
