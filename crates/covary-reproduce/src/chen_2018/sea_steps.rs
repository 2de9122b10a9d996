//! From what the paper did to what `sea.rs` does, one change at a time: which of them makes hidden temperatures
//! come back.

use super::sea::{
    Errors, LEVELS, MASKS, N_MONTHS, Recovered, Sea, Spectra, VALIDATION, complete_spectrum, spec_above,
};
use crate::{Comparison, Error, Part, Row, Run};
use covary::infer::{Em, Spectral};
use covary::model::FilledCell;
use covary::{Dataset, Density, Estimator, LinearGaussian, Matrix, Reconstruction, Spec};
use covary_report::chart::fixed;

/// The paper's components, and its rounds of fit and refill.
pub(super) const COMPONENTS: usize = 20;
const ROUNDS: usize = 10;
/// Cells of the globe that are not among the columns.
const GLOBE: usize = 36 * 72;

/// The paper's routine: gaps filled with the mean of their row, then PCA, and again from what it makes of them.
pub(super) fn refilled(table: &Matrix, n_components: usize) -> Result<Matrix, Error> {
    let (n, d) = (table.n_rows(), table.n_columns());
    let seen_mean = |i: usize| {
        let seen = table.row(i).iter().filter(|v| !v.is_nan());
        seen.clone().sum::<f64>() / seen.count() as f64
    };
    let means: Vec<f64> = (0..n).map(seen_mean).collect();
    let or = |gap: f64, at| if table[at].is_nan() { gap } else { table[at] };
    let mut filled = Matrix::from_fn(n, d, |i, j| or(means[i], (i, j)));
    for _ in 0..ROUNDS {
        let data = Dataset::new(filled)?;
        let model = Spectral::default().fit(&data, &Spec::ppca(n_components))?.model;
        let seen = model.reconstruct(&data, Reconstruction::Orthogonal)?;
        filled = Matrix::from_fn(n, d, |i, j| or(seen[(i, j)], (i, j)));
    }
    Ok(filled)
}

/// What the routine's table is of.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Values {
    /// Temperatures, land cells being columns without a value.
    OfGlobe,
    Temperatures,
    Anomalies,
}

/// Squared errors of hidden cells of 1982–1991 by the paper's routine: their root mean.
pub(super) fn routine_error(
    sea: &Sea,
    values: Values,
    hides: impl Fn(usize, usize) -> bool,
) -> Result<f64, Error> {
    let base =
        |i: usize, j: usize| if values == Values::Anomalies { 0.0 } else { sea.climatology[(i % 12, j)] };
    let land = if values == Values::OfGlobe { GLOBE - sea.n_cells() } else { 0 };
    let table = Matrix::from_fn(N_MONTHS, sea.n_cells() + land, |i, j| {
        if j >= sea.n_cells() || hides(i, j) { f64::NAN } else { sea.anomalies[(i, j)] + base(i, j) }
    });
    let filled = refilled(&table, COMPONENTS)?;
    let (mut squares, mut n) = (0.0, 0);
    for (i, j) in VALIDATION.flat_map(|i| (0..sea.n_cells()).map(move |j| (i, j))) {
        if hides(i, j) {
            squares += (filled[(i, j)] - base(i, j) - sea.anomalies[(i, j)]).powi(2);
            n += 1;
        }
    }
    Ok((squares / f64::from(n)).sqrt())
}

/// What one change made of one mask: the error in °C, and the share of truths inside 95 % intervals, where the way
/// states some.
type Outcome = (f64, Option<f64>);

/// Every step behind one mask, in the order of [`STEPS`].
fn outcomes(
    sea: &Sea,
    plain: &Sea,
    k: usize,
    recovered: &Recovered,
    spectra: &Spectra,
) -> Result<Vec<Outcome>, Error> {
    let hidden = &sea.hidden[k];
    let hides = |i: usize, j: usize| VALIDATION.contains(&i) && hidden[j];
    let behind = |sea: &Sea, model: &LinearGaussian| -> Result<Outcome, Error> {
        let filled = model.impute(&sea.table(0..N_MONTHS, hides)?)?;
        let cells: Vec<FilledCell> = sea.in_degrees(filled.cells());
        let errors = Errors::of(sea, cells.iter())?;
        Ok((errors.rmse, Some(errors.covered[2])))
    };
    let plain_spectrum = complete_spectrum(plain)?;
    let few = Spec::ppca(COMPONENTS);
    let many = spec_above(&plain_spectrum, recovered.floor);
    let without_floor = |spec: &Spec| Spec { noise_floor: None, ..spec.clone() };
    let all = Errors::of(sea, recovered.cells.iter())?;
    let routine = |values| Ok::<_, Error>((routine_error(sea, values, hides)?, None));
    let converged = Em::default().fit(&plain.table(0..N_MONTHS, hides)?, &few)?.model;
    let weighted = spec_above(&spectra.all, recovered.floor);
    Ok(vec![
        routine(Values::OfGlobe)?,
        routine(Values::Temperatures)?,
        routine(Values::Anomalies)?,
        behind(plain, &plain_spectrum.fit(&few)?.model)?,
        behind(plain, &converged)?,
        behind(sea, &spectra.all.fit(&few)?.model)?,
        behind(plain, &plain_spectrum.fit(&Spec { noise_floor: Some(recovered.floor), ..few })?.model)?,
        behind(plain, &plain_spectrum.fit(&without_floor(&many))?.model)?,
        behind(plain, &plain_spectrum.fit(&many)?.model)?,
        behind(sea, &spectra.all.fit(&without_floor(&weighted))?.model)?,
        behind(sea, &spectra.all.fit(&weighted)?.model)?,
        (all.rmse, Some(all.covered[2])),
    ])
}

/// What the steps are, and why one that does not beat climatology does not.
const STEPS: [(&str, &str); 12] = [
    (
        "the paper's routine: temperatures of the globe, PCA of 20 components",
        "gaps begin at the month's spatial mean, and the year's course, which twenty components hold, holds them there",
    ),
    ("the routine without columns of land", "land is not the reason: the same as with it"),
    ("the routine of anomalies", "the routine treats what it filled in as observed"),
    ("20 components of the complete months, gaps integrated out", "twenty components are too few"),
    (
        "20 components of all months, EM until it converges",
        "where few cells are seen, the axes follow the seen cells of 1982–1991 at the cost of the hidden ones",
    ),
    ("20 components, weighted by area", "twenty components are too few"),
    ("20 components, with the noise floor, which they do not reach", "twenty components are too few"),
    ("all components above the floor, without the floor itself", "no noise is left"),
    ("all components above the floor, with it", "no noise is left"),
    ("the same, weighted by area, without the floor", "no noise is left"),
    ("the same, weighted by area, with the floor", "no noise is left"),
    ("ours: that, then EM over all months and noise by cell", "no noise is left"),
];

/// The table of all steps and masks.
pub(super) fn table(
    run: &Run,
    sea: &Sea,
    spectra: &Spectra,
    masks: &[(&Recovered, f64)],
) -> Result<Comparison, Error> {
    let plain = sea.unweighted();
    let each = |k: usize| outcomes(sea, &plain, k, masks[k].0, spectra);
    let found = run.each("one change at a time", masks.len(), each)?;
    let rows = STEPS.iter().enumerate().map(|(step, (name, why))| {
        let part = |k: usize| {
            let (error, covered) = found[k][step];
            let mut ours = fixed(error, if error < 10.0 { 3 } else { 1 });
            if let Some(covered) = covered {
                ours = format!("{ours}, {} %", fixed(100.0 * covered, 0));
            }
            Part::new(MASKS[k].name, &fixed(masks[k].1, 3), &ours, error < masks[k].1)
        };
        Row::of_parts(name, (0..masks.len()).map(part).collect()).why(why)
    });
    Ok(Comparison::with(
        "climatology, to be below it",
        &format!(
            "What does it, one change at a time: errors of hidden cells in °C, and coverage of {} % intervals",
            100.0 * LEVELS[2]
        ),
        rows.collect(),
    ))
}
