//! Dynamic factors whose loadings have a posterior: against Bayesian PCA, against a larger model without one, and what it is good for.

use crate::common::assert_close;
use crate::dynamics::{GAP, random_case};
use covary::data::{Shape, simulate};
use covary::dynamics::{DynamicFactor, Forecast, Regressors, Start, Timeline};
use covary::family::{Components, Family, Request};
use covary::infer::{ObjectiveKind, Structured};
use covary::io::model_file;
use covary::learned::Rows;
use covary::model::{Fill, FilledCell, Uncertainty};
use covary::{Dataset, Density, Error, Estimator, Matrix, Noise, Spec};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Factors without memory, whose noise has none, are those of Bayesian PCA.
#[test]
fn without_memory_it_is_bayesian_pca() {
    let (whole, _) = simulate::ppca(Shape { rows: 40, columns: 6, n_components: 2 }, 1);
    let table = simulate::hide(&whole, 0.2, 2);
    let bayes = Structured::default().fit(&table, &Spec::ppca(2)).unwrap().model;
    let k = bayes.n_components();
    let model = DynamicFactor::new(
        Matrix::zeros(k, k),
        Matrix::identity(k),
        bayes.loadings().clone(),
        Matrix::from_fn(6, 1, |j, _| bayes.mean()[j]),
        Regressors::default(),
        bayes.noise().clone(),
        Start { mean: vec![0.0; k], covariance: Matrix::identity(k) },
    )
    .unwrap();
    let certain = model.cells(&table).unwrap();
    let model = model.with_uncertainty(bayes.uncertainty().unwrap().clone()).unwrap();
    let (got, want) = (model.cells(&table).unwrap(), bayes.gap_cells(&table).unwrap());
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(&want) {
        assert_eq!((got.row, got.column), (want.row, want.column));
        assert_close("filled cell", &[got.mean, got.sd], &[want.mean, want.sd], 1e-9);
    }
    // Which taking loadings for known does not say.
    assert!(got.iter().zip(&certain).any(|(got, certain)| (got.mean - certain.mean).abs() > 0.01 * got.sd));
}

/// The same model with k + 1 further columns for each of its own, `R zᵀ` and noise of variance 1 that remembers as much, z = (x, 1) and
/// `E = R Rᵀ`: to have seen 0 in these wherever the column was seen is what its posterior says. Or these columns without loadings and
/// levels, whose densities are constants.
fn extended(model: &DynamicFactor, roots: &[Matrix], constants_only: bool) -> DynamicFactor {
    let (d, k, r) = (model.n_columns(), model.n_components(), model.regressors().len());
    let all = d + d * (k + 1);
    let further = |row: usize| ((row - d) / (k + 1), (row - d) % (k + 1));
    let size = if constants_only { 0.0 } else { 1.0 };
    let w = Matrix::from_fn(all, k, |row, i| match row {
        _ if row < d => model.loadings()[(row, i)],
        _ => size * roots[further(row).0][(i, further(row).1)],
    });
    let b = Matrix::from_fn(all, r, |row, l| match row {
        _ if row < d => model.coefficients()[(row, l)],
        _ if l == 0 => size * roots[further(row).0][(k, further(row).1)],
        _ => 0.0,
    });
    let noise = (0..all).map(|row| if row < d { model.noise().variance(row) } else { 1.0 }).collect();
    let memory = model
        .noise_memory()
        .map(|rho| (0..all).map(|row| rho[if row < d { row } else { further(row).0 }]).collect());
    DynamicFactor::new(
        model.transition().clone(),
        model.innovation().clone(),
        w,
        b,
        model.regressors().clone(),
        Noise::Diagonal(noise),
        model.start().clone(),
    )
    .and_then(|m| m.with_noise_memory(memory))
    .unwrap()
}

/// What the larger model without a posterior says of a cell, of those of its further columns, and of these without loadings.
fn expected(
    model: &DynamicFactor,
    (row, column): (usize, usize),
    large: &[FilledCell],
    constant: &[FilledCell],
) -> [f64; 2] {
    let (d, k) = (model.n_columns(), model.n_components());
    let of = |cells: &[FilledCell], column: usize| {
        let cell = cells.iter().find(|c| (c.row, c.column) == (row, column)).unwrap();
        (cell.mean, cell.sd)
    };
    let (mean, sd) = of(large, column);
    let further = (0..=k).map(|i| d + column * (k + 1) + i);
    let added: f64 = further
        .map(|c| {
            let ((mean, sd), (_, noise)) = (of(large, c), of(constant, c));
            mean * mean + sd * sd - noise * noise
        })
        .sum();
    [mean, (sd * sd + model.noise().variance(column) * added).sqrt()]
}

#[test]
fn a_posterior_of_loadings_is_as_good_as_having_seen_zeros() {
    for (seed, p, remembers) in
        (0..12).flat_map(|seed| [(seed, 1, false), (seed, 1, true), (seed, 2, false), (seed, 2, true)])
    {
        let (model, table, times) = random_case(seed, p);
        let model = model.with_noise_memory(remembers.then(|| vec![0.8, -0.4, 0.95])).unwrap();
        let (d, k) = (model.n_columns(), model.n_components());
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let roots: Vec<Matrix> =
            (0..d).map(|_| Matrix::from_fn(k + 1, k + 1, |_, _| rng.random::<f64>() - 0.5)).collect();
        let square = |r: &Matrix| {
            let mut e = r.dot_t(r);
            e.symmetrize();
            e
        };
        let uncertainty = Uncertainty {
            relative: roots.iter().map(square).collect(),
            shape: vec![1e15],
            coupled: true,
            inclusion: Vec::new(),
        };
        let uncertain = model.clone().with_uncertainty(uncertainty).unwrap();
        let cell = |i: usize, j: usize| match j {
            _ if j < d => table.row(i)[j],
            _ if table.row(i)[(j - d) / (k + 1)].is_nan() => GAP,
            _ => 0.0,
        };
        let seen = Matrix::from_fn(table.n_rows(), d + d * (k + 1), cell);
        let seen = Dataset::new(seen).unwrap();
        let (large, constant) = (extended(&model, &roots, false), extended(&model, &roots, true));

        let total = |m: &DynamicFactor, t: &Dataset| m.log_density(t, &times).unwrap().iter().sum::<f64>();
        let constants = total(&constant, &seen) - total(&model, &table);
        let want = total(&large, &seen) - constants;
        assert_close("bound", &[total(&uncertain, &table)], &[want], 1e-8);
        let states = |m: &DynamicFactor, t: &Dataset| m.smooth(t, &times).unwrap();
        let (got, want) = (states(&uncertain, &table), states(&large, &seen));
        assert_close("factors", got[0].means.as_slice(), want[0].means.as_slice(), 1e-8);

        let (large_cells, constant_cells) =
            (large.fill(&seen, &times).unwrap(), constant.fill(&seen, &times).unwrap());
        for cell in uncertain.fill(&table, &times).unwrap() {
            let want = expected(&model, (cell.row, cell.column), &large_cells, &constant_cells);
            assert_close("filled cell", &[cell.mean, cell.sd], &want, 1e-8);
        }
        let ahead = |m: &DynamicFactor, t: &Dataset| -> Vec<Forecast> { m.forecast(t, &times, 3).unwrap() };
        let (large_cells, constant_cells) = (ahead(&large, &seen), ahead(&constant, &seen));
        for cell in &ahead(&uncertain, &table)[0].cells {
            let want =
                expected(&model, (cell.row, cell.column), &large_cells[0].cells, &constant_cells[0].cells);
            assert_close("forecast", &[cell.mean, cell.sd], &want, 1e-8);
        }
        // Another basis of the factors, other words for the same.
        let turned = uncertain.canonical().unwrap();
        assert_close("basis", &[total(&turned, &table)], &[total(&uncertain, &table)], 1e-8);
    }
}

#[test]
fn a_posterior_that_does_not_fit_is_refused() {
    let (model, _, _) = random_case(0, 1);
    let uncertainty = Uncertainty {
        relative: vec![Matrix::identity(2)],
        shape: vec![2.0],
        coupled: true,
        inclusion: vec![],
    };
    assert!(matches!(
        model.with_uncertainty(uncertainty),
        Err(Error::WrongLength { expected: 3, got: 2, .. })
    ));
}

/// Five factors that remember 0.85 and noise that remembers 0.7, of 60 months and 50 columns; half of the columns are hidden for 20 months.
fn wide(seed: u64) -> (Matrix, Dataset) {
    let (rows, d, k) = (60, 50, 5);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0;
    let loadings = Matrix::from_fn(d, k, |_, i| normal() * 0.8_f64.powi(i as i32));
    let start = Start { mean: vec![0.0; k], covariance: Matrix::identity(k) };
    let (a, q) = (Matrix::diagonal(&vec![0.85; k]), Matrix::diagonal(&vec![1.0 - 0.85 * 0.85; k]));
    let b = Matrix::zeros(d, 1);
    let truth = DynamicFactor::new(a, q, loadings, b, Regressors::default(), Noise::Isotropic(0.5), start)
        .and_then(|m| m.with_noise_memory(Some(vec![0.7; d])))
        .unwrap();
    let whole = truth.sample(0, rows, &mut rng).unwrap();
    let hidden = |i: usize, j: usize| (25..45).contains(&i) && j.is_multiple_of(2);
    let table = Matrix::from_fn(rows, d, |i, j| if hidden(i, j) { GAP } else { whole[(i, j)] });
    (whole, Dataset::new(table).unwrap())
}

fn request(family: Family, options: &[(&str, &str)]) -> Request {
    Request {
        n_components: Some(Components::Number(12)),
        options: options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        ..Request::new(family)
    }
}

/// Behind a mask that stays, the rows before and after say nothing that is new of what persists: a model that takes noise for new in every
/// row believes its factors too much, one that knows better is no worse than rows taken one by one.
#[test]
fn what_persists_is_not_counted_twice() {
    let (mut bayes, mut dynamic, mut forgetful, mut certain) = (0.0, 0.0, 0.0, 0.0);
    for seed in 0..4 {
        let (whole, table) = wide(seed);
        let error = |cells: &[FilledCell]| {
            cells.iter().map(|c| (c.mean - whole[(c.row, c.column)]).powi(2)).sum::<f64>()
                / cells.len() as f64
        };
        let filled = |request: &Request| {
            let learned = request.learn(&table).unwrap();
            error(learned.fill(Rows::Training).unwrap().fill(&table).unwrap().cells())
        };
        bayes += filled(&request(Family::Bpca, &[])) / 4.0;
        dynamic += filled(&request(Family::Dfm, &[])) / 4.0;
        forgetful += filled(&request(Family::Dfm, &[("noise_memory", "false")])) / 4.0;
        let learned = request(Family::Dfm, &[]).learn(&table).unwrap();
        let fit = learned.dynamic().unwrap();
        assert!(fit.model.noise_memory().is_some() && fit.report.objective.kind == ObjectiveKind::LowerBound);
        assert!(fit.report.trace.windows(2).all(|w| w[1] >= w[0] - 1e-9 * w[0].abs()));
        let model = &fit.model;
        let plain = DynamicFactor::new(
            model.transition().clone(),
            model.innovation().clone(),
            model.loadings().clone(),
            model.coefficients().clone(),
            model.regressors().clone(),
            model.noise().clone(),
            model.start().clone(),
        )
        .and_then(|m| m.with_noise_memory(model.noise_memory().map(<[f64]>::to_vec)))
        .unwrap();
        certain += error(&plain.fill(&table, &Timeline::regular(60)).unwrap()) / 4.0;
    }
    assert!(
        dynamic < bayes && dynamic < forgetful && dynamic < certain,
        "{bayes} {dynamic} {forgetful} {certain}"
    );
}

#[test]
fn files_keep_the_posterior_and_draws_know_of_it() {
    let (_, table) = wide(1);
    let learned = request(Family::Dfm, &[]).learn(&table).unwrap();
    let mut bytes = Vec::new();
    model_file::write(&learned, &mut bytes).unwrap();
    let back = model_file::read(&bytes[..]).unwrap();
    let (ours, theirs) = (learned.dynamic().unwrap(), back.dynamic().unwrap());
    assert_eq!(ours.model, theirs.model);
    assert!(theirs.model.uncertainty().is_some());

    // Joint draws of the gaps have the mean and the spread of filled cells.
    let (cells, times, n) = (ours.model.cells(&table).unwrap(), Timeline::regular(60), 100_u32);
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let draws: Vec<Matrix> =
        (0..n).map(|_| ours.model.draw_gaps(&table, &times, &mut rng).unwrap()).collect();
    let (mut off, mut ratio) = (0.0, 0.0);
    for cell in &cells {
        let at = (cell.row, cell.column);
        let mean = draws.iter().map(|m| m[at]).sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|m| (m[at] - mean).powi(2)).sum::<f64>() / f64::from(n);
        off += ((mean - cell.mean) / cell.sd).powi(2) * f64::from(n) / cells.len() as f64;
        ratio += variance.sqrt() / cell.sd / cells.len() as f64;
    }
    // 100 draws know a mean to a tenth of its sd: the squares are 1 on average.
    assert!(off < 2.0, "{off}");
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
}
