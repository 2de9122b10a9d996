//! Does the world agree on real data? Every reference was computed or printed by others; the table in
//! `docs/agreement.md` names them. The data may not be shipped: see `common::shared_data`.

use crate::common::shared_data;
use covary::data::simulate;
use covary::infer::{Em, Spectral, Spectrum};
use covary::io::csv;
use covary::model::Imputed;
use covary::select::{ChoiceRule, HeldOutOptions, held_out_cells};
use covary::{CentralMoments, Coordinates, Dataset, Density, Estimator, Matrix, Spec};
use std::ops::Range;
use std::path::Path;

/// The numbers of a CSV file, text columns left out.
fn table(file: &str) -> Option<Dataset> {
    Some(read(&shared_data(file)?))
}

fn read(path: &Path) -> Dataset {
    csv::read(std::fs::File::open(path).unwrap()).unwrap().dataset().clone()
}

fn columns(data: &Dataset, range: Range<usize>) -> Dataset {
    let values = data.values();
    Dataset::new(Matrix::from_fn(values.n_rows(), range.len(), |i, j| values[(i, range.start + j)])).unwrap()
}

/// Every number, rounded, is the one printed: they differ by at most half a unit of its last digit.
#[track_caller]
fn check_printed(what: &str, got: &[f64], printed: &str) {
    let printed: Vec<&str> = printed.split_whitespace().collect();
    assert_eq!(got.len(), printed.len(), "{what}: number of values");
    for (got, printed) in got.iter().zip(printed) {
        let decimals = printed.split_once('.').map_or(0, |(_, digits)| digits.len());
        let half_a_unit = 0.5 * 0.1_f64.powi(decimals as i32);
        let want: f64 = printed.parse().unwrap();
        assert!((got - want).abs() <= 1.000_001 * half_a_unit, "{what}: got {got}, printed {printed}");
    }
}

fn spectrum(data: &Dataset, standardize: bool) -> Spectrum {
    Spectral::default().spectrum(data, data.n_columns(), standardize).unwrap()
}

/// Shares of the total variance, the first `k`.
fn shares(spectrum: &Spectrum, k: usize) -> Vec<f64> {
    spectrum.eigenvalues[..k].iter().map(|l| l / spectrum.total_variance).collect()
}

fn percent(shares: &[f64]) -> Vec<f64> {
    shares.iter().map(|s| 100.0 * s).collect()
}

/// Root mean squared error over the filled cells, and the same in standard deviations of the true
/// values there: `NRMSE = √(mean (t̂ − t)² / var t)` (Oba et al. 2003).
fn errors<'a>(whole: &Dataset, cells: impl Iterator<Item = (usize, usize, f64)> + 'a) -> (f64, f64) {
    let pairs: Vec<(f64, f64)> = cells.map(|(i, j, filled)| (filled, whole.values()[(i, j)])).collect();
    let n = pairs.len() as f64;
    let mean = pairs.iter().map(|(_, t)| t).sum::<f64>() / n;
    let variance = pairs.iter().map(|(_, t)| (t - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let square = pairs.iter().map(|(f, t)| (f - t).powi(2)).sum::<f64>() / n;
    (square.sqrt(), (square / variance).sqrt())
}

fn errors_of(whole: &Dataset, filled: &Imputed) -> (f64, f64) {
    errors(whole, filled.cells().iter().map(|c| (c.row, c.column, c.mean)))
}

fn filled(gaps: &Dataset, n_components: usize) -> Imputed {
    let fit = Em::default().fit(gaps, &Spec::ppca(n_components)).unwrap();
    assert!(fit.report.converged());
    fit.predictive().impute(gaps).unwrap()
}

#[test]
fn tobamovirus_spectrum_noise_and_likelihood_agree() {
    let Some(virus) = table("tobamovirus/tobamovirus.csv") else { return };
    let eigenvalues = spectrum(&virus, false).eigenvalues;
    check_printed("eigenvalues", &eigenvalues[..5], "30.867 26.496 7.443 5.326 4.123");
    for (q, noise, score) in [(1, "3.0898", "-36.845"), (2, "1.6269", "-32.788"), (3, "1.2391", "-31.506")] {
        let closed = Spectral::default().fit(&virus, &Spec::ppca(q)).unwrap().model;
        let em = Em::default().fit(&virus, &Spec::ppca(q)).unwrap().model;
        for model in [closed, em] {
            check_printed("σ²", &[model.noise().variance(0)], noise);
            check_printed("mean log-likelihood", &[model.score(&virus).unwrap()], score);
        }
    }
}

/// How alike two sets of scores are, whatever rotation lies between them: 1 if they are the same up
/// to rotation and scale (Escoufier's RV).
///
/// ```text
/// RV = ‖XᵀY‖² / (‖XᵀX‖ ‖YᵀY‖)
/// ```
fn rv(x: &Matrix, y: &Matrix) -> f64 {
    let squares = |a: &Matrix, b: &Matrix| a.t_dot(b).as_slice().iter().map(|v| v * v).sum::<f64>();
    squares(x, y) / (squares(x, x) * squares(y, y)).sqrt()
}

#[test]
fn tobamovirus_scores_survive_the_loss_of_a_fifth_of_the_cells() {
    let Some(virus) = table("tobamovirus/tobamovirus.csv") else { return };
    let scores = |data: &Dataset| {
        let model = Em::default().fit(data, &Spec::ppca(2)).unwrap().model;
        model.transform(data, Coordinates::Posterior).unwrap()
    };
    let whole = scores(&virus);
    let alike: Vec<f64> =
        (0..20).map(|seed| rv(&whole, &scores(&simulate::hide(&virus, 0.2, seed)))).collect();
    let mean = alike.iter().sum::<f64>() / 20.0;
    assert!(mean > 0.92 && alike.iter().all(|rv| *rv > 0.85), "mean {mean} of {alike:?}");
}

#[test]
fn metabolite_gaps_are_filled_as_well_as_by_others() {
    let Some(gaps) = table("metabolite/metabolite_missing.csv") else { return };
    let Some(whole) = table("metabolite/metabolite_complete.csv") else { return };
    check_printed("R²", &shares(&spectrum(&whole, false), 5), ".76806 .09395 .02632 .02460 .01558");
    // In the units of the file, not standardized, as the references are.
    let (rmse, nrmse) = errors_of(&whole, &filled(&gaps, 0));
    check_printed("column means", &[rmse], ".4452");
    check_printed("column means, normalized", &[nrmse], ".923");
    let rmse = |q| errors_of(&whole, &filled(&gaps, q)).0;
    check_printed("exact maximum likelihood", &[rmse(5)], ".1482");
    // pcaMethods `ppca`: .1875, .1479 and .1598.
    assert!(rmse(2) < 0.1885 && rmse(5) <= 0.149 && rmse(10) < 0.1598);
}

#[test]
fn held_out_cells_find_the_five_components_of_the_metabolites() {
    let Some(gaps) = table("metabolite/metabolite_missing.csv") else { return };
    let options = HeldOutOptions::default();
    let scores = held_out_cells(&gaps, &Spec::ppca(0), 0..=12, &Em::default(), &options).unwrap();
    assert_eq!(scores.chosen(ChoiceRule::OneStandardError), 5);
}

#[test]
fn principal_variances_of_known_tables_agree() {
    if let Some(iris) = table("iris/iris.csv") {
        // Printed with divisor N − 1.
        let variances: Vec<f64> =
            spectrum(&iris, false).eigenvalues.iter().map(|l| l * 150.0 / 149.0).collect();
        check_printed("iris", &variances, "4.228242 .2426707 .0782095 .0238351");
    }
    if let Some(arrests) = table("usarrests/usarrests.csv") {
        let deviations: Vec<f64> = spectrum(&arrests, true).eigenvalues.iter().map(|l| l.sqrt()).collect();
        check_printed("usarrests", &deviations, "1.574878 .9948694 .5971291 .4164494");
    }
    if let Some(decathlon) = table("decathlon/decathlon.csv") {
        let events = spectrum(&columns(&decathlon, 0..10), true);
        check_printed("decathlon", &events.eigenvalues[..4], "3.2719 1.7371 1.4049 1.0569");
    }
    if let Some(oil) = table("oil_flow/oil_train.csv") {
        let measured = spectrum(&columns(&oil, 0..12), false);
        check_printed("oil", &percent(&shares(&measured, 5)), "38.70 27.12 15.44 6.97 5.15");
    }
    if let Some(days) = table("canadian_weather/daily_temperature_c.csv") {
        // One row per station, one column per day.
        let curves = spectrum(&Dataset::new(days.values().transpose()).unwrap(), false);
        check_printed("canadian", &percent(&shares(&curves, 4)), "88.03 8.47 2.06 .55");
    }
    if let Some(pitprops) = table("pitprops/pitprops_cor.csv") {
        let moments = CentralMoments::from_covariance(pitprops.values(), 180).unwrap();
        let model = Spectral::default().fit_moments(&moments, &Spec::ppca(6)).unwrap().model;
        let shares = percent(&model.explained_variance_ratio());
        check_printed("pitprops", &shares, "32.5 18.3 14.4 8.5 7.0 6.3");
    }
    let wine = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/wine.csv"));
    check_printed("wine", &percent(&shares(&spectrum(&wine, true), 3)), "36.20 19.21 11.12");
}

/// The genes complete in all 18 alpha columns of the yeast table, which is a Parquet file.
#[cfg(feature = "parquet")]
fn yeast() -> Option<Dataset> {
    use covary::io::{self, Format, Input, ReadOptions};
    let file = std::fs::File::open(shared_data("yeast_spellman/yeast_spellman.parquet")?).unwrap();
    let format = Format::from_name("parquet").unwrap();
    let table = io::read(Input::<std::io::Empty>::File(file), format, &ReadOptions::default()).unwrap();
    let genes = table.dataset();
    let alpha: Vec<usize> =
        (0..genes.n_columns()).filter(|&j| genes.column_names()[j].starts_with("alpha_")).collect();
    let rows: Vec<Vec<f64>> =
        genes.values().rows().map(|row| alpha.iter().map(|&j| row[j]).collect()).collect();
    let complete: Vec<Vec<f64>> = rows.into_iter().filter(|row| !row.iter().any(|v| v.is_nan())).collect();
    Some(Dataset::new(Matrix::from_rows(&complete)).unwrap())
}

#[cfg(not(feature = "parquet"))]
#[allow(clippy::print_stderr, reason = "a skipped comparison must be seen")]
fn yeast() -> Option<Dataset> {
    eprintln!("SKIPPED: the yeast table is a Parquet file; test with --all-features");
    None
}

/// Every gap filled by the mean of what its row still has.
fn row_means(gaps: &Dataset) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
    gaps.values().rows().enumerate().flat_map(|(i, row)| {
        let seen: Vec<f64> = row.iter().copied().filter(|v| !v.is_nan()).collect();
        let mean = seen.iter().sum::<f64>() / seen.len() as f64;
        row.iter().enumerate().filter(|(_, v)| v.is_nan()).map(move |(j, _)| (i, j, mean))
    })
}

#[test]
fn yeast_gaps_are_filled_better_than_by_neighbors_or_svd() {
    let Some(genes) = yeast() else { return };
    assert_eq!((genes.n_rows(), genes.n_columns()), (4489, 18));
    // 10 nearest neighbors, `svdImpute` with 5 components, and `bpca` with 17.
    for (share, neighbors, svd, bpca) in [(0.05, 0.740, 0.846, 0.451), (0.10, 0.758, 0.849, 0.582)] {
        let gaps = simulate::hide(&genes, share, 0);
        // The same baseline, so the same measure.
        check_printed("row means", &[errors(&genes, row_means(&gaps)).1], "1.06");
        let nrmse = |q| errors_of(&genes, &filled(&gaps, q)).1;
        assert!(nrmse(5) < svd - 0.05, "{share}: {}", nrmse(5));
        // Half as many components as columns.
        assert!(nrmse(9) < neighbors - 0.03, "{share}: {}", nrmse(9));
        // Rows sum to zero, so that 17 components solve a lone gap: a check of the method, not of
        // prediction.
        assert!(nrmse(17) < bpca, "{share}: {}", nrmse(17));
    }
}
