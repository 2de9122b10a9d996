//! Canonical correlation: the golden case, R's figures, invariances, prediction across views, and what is refused.

use crate::common::{assert_close, dataset, flat, golden, matrix, shared_data};
use covary::data::{Shape, simulate};
use covary::views::{Canonical, CanonicalCorrelation};
use covary::{Coordinates, Dataset, Density, Error, LinearGaussian, Matrix, Noise};
use rand::SeedableRng;
use serde_json::Value;
use std::ops::Range;

fn fit(x: &Dataset, y: &Dataset) -> Result<Canonical, Error> {
    CanonicalCorrelation::default().fit(x, y)
}

fn columns(data: &Dataset, range: Range<usize>) -> Dataset {
    Dataset::new(Matrix::from_fn(data.n_rows(), range.len(), |i, j| data.row(i)[range.start + j])).unwrap()
}

fn joined(x: &Dataset, y: &Dataset) -> Matrix {
    let rows: Vec<Vec<f64>> = (0..x.n_rows()).map(|i| [x.row(i), y.row(i)].concat()).collect();
    Matrix::from_rows(&rows)
}

fn case() -> (Value, Dataset, Dataset) {
    let case = golden("part2", "pcca_ml");
    let (x, y) = (dataset(&case["input"]["X"]), dataset(&case["input"]["Y"]));
    (case, x, y)
}

#[test]
fn the_golden_case_is_met() {
    let (case, x, y) = case();
    let (want, tolerance) = (&case["expected"], case["tolerance"]["values_rel"].as_f64().unwrap());
    let found = fit(&x, &y).unwrap();
    assert_close("ρ", found.correlations(), &flat(&want["rho"]), tolerance);
    assert_close(
        "A",
        found.weights(0).as_slice(),
        matrix(&want["canonical_weights_x"]).as_slice(),
        tolerance,
    );
    assert_close(
        "B",
        found.weights(1).as_slice(),
        matrix(&want["canonical_weights_y"]).as_slice(),
        tolerance,
    );
    let square = |row: &[f64]| row.iter().map(|v| v * v).sum::<f64>();
    for want in want["per_k"].as_array().unwrap() {
        let k = want["k"].as_u64().unwrap() as usize;
        let request = CanonicalCorrelation { n_components: Some(k), ..CanonicalCorrelation::default() };
        let found = request.fit(&x, &y).unwrap();
        let check = |what: &str, got: &[f64]| assert_close(what, got, &flat(&want[what]), tolerance);
        check("loglik", &[found.log_likelihood().unwrap()]);
        let (wx, wy) = (found.loadings(0), found.loadings(1));
        check("WxWxt", wx.dot_t(&wx).as_slice());
        check("WyWyt", wy.dot_t(&wy).as_slice());
        check("WxWyt", wx.dot_t(&wy).as_slice());
        check("Psix", found.noise_covariance(0).as_slice());
        check("E_z_given_xy_row0_sqnorm", &[square(found.scores(&x, &y).unwrap().row(0))]);
        // The same by the model, whose first k components are z.
        let model = found.model().unwrap();
        let both = Dataset::new(joined(&x, &y)).unwrap();
        check("loglik", &[model.log_likelihood(&both).unwrap()]);
        check("em_loglik_limit", &[model.log_likelihood(&both).unwrap()]);
        let posterior = model.posterior(&both).unwrap();
        check("E_z_given_xy_row0_sqnorm", &[square(&posterior.mean.row(0)[..k])]);
        let spread: Vec<f64> = (0..k).map(|i| posterior.covariance(0)[(i, i)]).collect();
        check("cov_z_given_xy", &spread);
        let hidden = Matrix::from_fn(40, 7, |i, j| if j < 4 { x.row(i)[j] } else { f64::NAN });
        let z = model.transform(&Dataset::new(hidden).unwrap(), Coordinates::Posterior).unwrap();
        check("E_z_given_x_row0_sqnorm", &[square(&z.row(0)[..k])]);
    }
}

#[test]
fn one_view_is_predicted_from_the_other() {
    let (_, x, y) = case();
    let request = CanonicalCorrelation { n_components: Some(2), ..CanonicalCorrelation::default() };
    let found = request.fit(&x, &y).unwrap();
    let filled = found.predict(1, &x).unwrap();
    // E[y | x] = μy + Wy P^½ Aᵀ (x − μx)      Cov[y | x] = Syy − Wy P Wyᵀ
    let (u, wy) = (found.transform(0, &x).unwrap(), found.loadings(1));
    let signal = |i: usize, j: usize| {
        (0..2).map(|k| wy[(j, k)] * found.correlations()[k].sqrt() * u[(i, k)]).sum::<f64>()
    };
    let explained = |j: usize| (0..2).map(|k| wy[(j, k)].powi(2) * found.correlations()[k]).sum::<f64>();
    for cell in filled.cells() {
        let j = cell.column - 4;
        let variance = y.observed_variances()[j] - explained(j);
        let want = found.mean(1)[j] + signal(cell.row, j);
        assert_close("prediction", &[cell.mean, cell.sd], &[want, variance.sqrt()], 1e-9);
    }
}

#[test]
fn canonical_correlations_are_those_of_r() {
    let read = |name: &str| {
        let file = std::fs::File::open(shared_data(name)?).expect("readable");
        Some(covary::io::csv::read(file).expect("a table").dataset().clone())
    };
    let want = golden("cca", "cancor");
    let check = |name: &str, x: &Dataset, y: &Dataset| {
        let found = fit(x, y).unwrap();
        let apart = |(a, b): (&f64, &f64)| (a - b).abs();
        let want = flat(&want[name]);
        let worst = found.correlations().iter().zip(&want).map(apart).fold(0.0, f64::max);
        assert!(worst < 1e-8, "{name}: {worst:.1e}");
        let again = found.correlations_on(x, y).unwrap();
        assert_close(name, &again, found.correlations(), 1e-9);
    };
    if let Some(data) = read("linnerud/linnerud.csv") {
        check("linnerud", &columns(&data, 0..3), &columns(&data, 3..6));
    }
    if let Some(data) = read("mmreg/mmreg.csv") {
        check("mmreg", &columns(&data, 0..3), &columns(&data, 3..8));
    }
    if let (Some(genes), Some(lipids)) = (read("nutrimouse/gene.csv"), read("nutrimouse/lipid.csv")) {
        check("nutrimouse_first_ten", &columns(&genes, 0..10), &columns(&lipids, 0..10));
        // 120 genes in 40 rows: nothing is left to correlate unless something holds the covariance up.
        let refused = fit(&genes, &lipids).unwrap_err();
        assert_eq!(refused, Error::SingularView { view: 1, rank: 39, columns: 120, rows: 40 });
        for request in [
            CanonicalCorrelation { ridge: 0.1, ..CanonicalCorrelation::default() },
            CanonicalCorrelation { rank: Some(10), ..CanonicalCorrelation::default() },
        ] {
            let found = request.fit(&genes, &lipids).unwrap();
            let rho = found.correlations();
            assert!(rho[0] < 1.0 && rho[0] > 0.8 && rho.windows(2).all(|r| r[0] >= r[1]), "{rho:?}");
            assert_eq!(found.log_likelihood(), None);
            let both = Dataset::new(joined(&genes, &lipids)).unwrap();
            assert!(found.model().unwrap().log_likelihood(&both).unwrap().is_finite());
        }
    }
}

#[test]
fn an_invertible_map_of_a_view_changes_no_correlation() {
    let (_, x, y) = case();
    let map = Matrix::from_rows(&[
        [3.0, 0.1, 0.0, 0.4],
        [0.0, 2e-3, 0.5, 0.0],
        [1.0, 0.0, 2e3, 0.3],
        [0.0, 0.7, 0.0, 1.0],
    ]);
    let mut mapped = x.values().dot(&map);
    mapped.as_mut_slice().iter_mut().for_each(|v| *v += 1e5);
    let (a, b) = (fit(&x, &y).unwrap(), fit(&Dataset::new(mapped).unwrap(), &y).unwrap());
    assert_close("ρ", b.correlations(), a.correlations(), 1e-8);
    let swapped = fit(&y, &x).unwrap();
    assert_close("ρ", swapped.correlations(), a.correlations(), 1e-12);
}

#[test]
fn variates_are_white_and_their_correlations_are_rho() {
    let (_, x, y) = case();
    let found = fit(&x, &y).unwrap();
    let (u, v) = (found.transform(0, &x).unwrap(), found.transform(1, &y).unwrap());
    let over_n = |mut m: Matrix| {
        m.as_mut_slice().iter_mut().for_each(|v| *v /= 40.0);
        m
    };
    let identity = Matrix::identity(3);
    assert_close("uᵀu/N", over_n(u.t_dot(&u)).as_slice(), identity.as_slice(), 1e-12);
    assert_close("vᵀv/N", over_n(v.t_dot(&v)).as_slice(), identity.as_slice(), 1e-12);
    let rho = Matrix::diagonal(found.correlations());
    assert_close("uᵀv/N", over_n(u.t_dot(&v)).as_slice(), rho.as_slice(), 1e-12);
    let parts = |v: usize| (found.mean(v).to_vec(), found.covariance(v).clone(), found.weights(v).clone());
    let ((mx, sx, a), (my, sy, b)) = (parts(0), parts(1));
    let rho_list = found.correlations().to_vec();
    let again = Canonical::new(40, [mx, my], [sx, sy], [a, b.clone()], rho_list.clone(), found.ln_det());
    assert_eq!(again.unwrap(), found);
    let (mean, covariance, _) = parts(0);
    let unlike = Canonical::new(
        40,
        [mean.clone(), mean],
        [covariance.clone(), covariance],
        [b.clone(), b],
        rho_list,
        None,
    );
    assert!(matches!(unlike, Err(Error::WrongLength { .. })));
    let structure = x.values().t_dot(&u);
    assert_close("structure", over_n(structure).as_slice(), found.structure(0).as_slice(), 1e-10);
}

/// The covariance is all there is to know, and the model keeps it.
#[test]
fn a_covariance_gives_the_same_as_its_rows() {
    let (_, x, y) = case();
    let found = fit(&x, &y).unwrap();
    let method = CanonicalCorrelation { n_components: Some(2), ..CanonicalCorrelation::default() };
    let model = method.fit(&x, &y).unwrap().model().unwrap();
    let again = method.of_covariance(40, model.mean(), &model.covariance(), 4).unwrap();
    assert_close("ρ", again.correlations(), &found.correlations()[..2], 1e-9);
    assert_close("A", again.weights(0).as_slice(), found.weights(0).first_columns(2).as_slice(), 1e-7);
}

#[test]
fn gaps_leave_the_mean_of_a_variate() {
    let (_, x, y) = case();
    let found = fit(&x, &y).unwrap();
    let both = joined(&x, &y);
    let [u, v] = found.variates(&Dataset::new(both.clone()).unwrap()).unwrap();
    assert_eq!((u, v), (found.transform(0, &x).unwrap(), found.transform(1, &y).unwrap()));
    // E[u | y] = P v: with one view gone, the other speaks for it.
    let gone = Matrix::from_fn(40, 7, |i, j| if j < 4 { f64::NAN } else { both[(i, j)] });
    let [mut u, v] = found.variates(&Dataset::new(gone).unwrap()).unwrap();
    u.scale_columns(&found.correlations().iter().map(|r| 1.0 / r).collect::<Vec<_>>());
    assert_close("u", u.as_slice(), v.as_slice(), 1e-8);
    let gap =
        Dataset::new(Matrix::from_fn(40, 4, |i, j| if (i, j) == (3, 1) { f64::NAN } else { x.row(i)[j] }));
    let (one, all) = (found.transform(0, gap.as_ref().unwrap()).unwrap(), found.transform(0, &x).unwrap());
    assert!(one.row(3) != all.row(3));
    assert_close("others", one.row(4), all.row(4), 1e-9);
    let z = found.scores(&gap.unwrap(), &y).unwrap();
    assert_close("z", z.row(4), found.scores(&x, &y).unwrap().row(4), 1e-9);
}

/// Of two unrelated views the first p-value is uniform; of related ones as many are small as they share.
#[test]
fn bartletts_test_tells_chance_from_correlation() {
    let mut below = 0;
    for seed in 0..200 {
        let (data, _) = simulate::ppca(Shape { rows: 60, columns: 5, n_components: 0 }, seed);
        let found = fit(&columns(&data, 0..3), &columns(&data, 3..5)).unwrap();
        below += usize::from(found.bartlett_tests()[0].p_value < 0.2);
    }
    // 40 are expected, with a standard deviation of 5.7.
    assert!((26..=54).contains(&below), "{below}");
    let w = Matrix::from_fn(7, 2, |j, k| if j % 2 == k { 1.0 } else { 0.2 });
    let truth = LinearGaussian::new(w, vec![0.0; 7], Noise::Isotropic(0.3)).unwrap();
    let data = Dataset::new(truth.sample(500, &mut rand_chacha::ChaCha8Rng::seed_from_u64(1))).unwrap();
    let tests = fit(&columns(&data, 0..4), &columns(&data, 4..7)).unwrap().bartlett_tests();
    assert!(tests[0].p_value < 1e-6 && tests[1].p_value < 1e-3 && tests[2].p_value > 0.05, "{tests:?}");
}

/// With as many columns as rows everything correlates perfectly, and shuffled rows show it.
#[test]
fn shuffled_rows_tell_chance_where_rows_are_few() {
    let noise = |rows: usize, seed| simulate::ppca(Shape { rows, columns: 9, n_components: 0 }, seed).0;
    let tests = |data: &Dataset, method: &CanonicalCorrelation| {
        method.permutation_tests(&columns(data, 0..5), &columns(data, 5..9), 99, 1).unwrap()
    };
    let plain = CanonicalCorrelation::default();
    let few = tests(&noise(9, 1), &plain);
    assert!((few[0].correlation - 1.0).abs() < 1e-9 && few[0].p_value == 1.0, "{few:?}");
    let ridge = CanonicalCorrelation { ridge: 0.1, ..plain };
    let below = (0..40).filter(|&seed| tests(&noise(12, seed), &ridge)[0].p_value < 0.2).count();
    // 8 are expected, with a standard deviation of 2.5.
    assert!((2..=15).contains(&below), "{below}");
    let w = Matrix::from_fn(9, 1, |j, _| 2.0 + (j as f64).sin());
    let truth = LinearGaussian::new(w, vec![0.0; 9], Noise::Isotropic(0.5)).unwrap();
    let data = Dataset::new(truth.sample(15, &mut rand_chacha::ChaCha8Rng::seed_from_u64(1))).unwrap();
    let found = tests(&data, &ridge);
    assert!(found[0].p_value <= 0.02 && found[1].p_value > 0.05, "{found:?}");
    assert_eq!(found, tests(&data, &ridge));
}

/// Columns that nearly repeat each other, beyond what squares can tell.
#[test]
fn a_nearly_singular_view_keeps_its_digits() {
    let (_, x, y) = case();
    let near = Matrix::from_fn(40, 4, |i, j| match j {
        3 => x.row(i)[0] + 1e-6 * x.row(i)[3],
        _ => x.row(i)[j],
    });
    let (plain, near) = (fit(&x, &y).unwrap(), fit(&Dataset::new(near).unwrap(), &y).unwrap());
    assert_close("ρ", near.correlations(), plain.correlations(), 1e-8);
}

#[test]
fn the_same_bits_on_one_thread_and_two() {
    let (data, _) =
        covary::data::simulate::ppca(covary::data::Shape { rows: 9000, columns: 12, n_components: 3 }, 1);
    let (x, y) = (columns(&data, 0..7), columns(&data, 7..12));
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| fit(&x, &y).unwrap())
    };
    let (one, two) = (on(1), on(2));
    let bits = |found: &Canonical| {
        let numbers =
            [found.correlations(), found.weights(0).as_slice(), found.weights(1).as_slice()].concat();
        numbers.iter().map(|v| v.to_bits()).collect::<Vec<_>>()
    };
    assert_eq!(bits(&one), bits(&two));
}

#[test]
fn what_has_no_canonical_correlation_is_refused_in_words() {
    let (_, x, y) = case();
    let with = |change: &dyn Fn(&mut Matrix)| {
        let mut values = x.values().clone();
        change(&mut values);
        Dataset::new(values).unwrap()
    };
    let twice = with(&|t| (0..40).for_each(|i| t[(i, 3)] = t[(i, 1)] - 2.0 * t[(i, 0)]));
    let refused = fit(&y, &twice).unwrap_err();
    assert_eq!(refused, Error::SingularView { view: 2, rank: 3, columns: 4, rows: 40 });
    assert!(refused.to_string().contains("give a ridge"));
    let constant = with(&|t| (0..40).for_each(|i| t[(i, 2)] = 1.0));
    assert_eq!(
        fit(&constant, &y).unwrap_err(),
        Error::SingularView { view: 1, rank: 3, columns: 4, rows: 40 }
    );
    let ridge = CanonicalCorrelation { ridge: 0.01, ..CanonicalCorrelation::default() };
    assert!(ridge.fit(&constant, &y).unwrap().correlations()[0] < 1.0);
    let gap = with(&|t| t[(0, 0)] = f64::NAN);
    assert!(matches!(fit(&gap, &y), Err(Error::HasGaps { gaps: 1, .. })));
    let flat = Matrix::identity(3);
    let plain = CanonicalCorrelation::default();
    assert_eq!(plain.of_covariance(9, &[0.0; 3], &flat, 0).unwrap_err(), Error::EmptyView { view: 1 });
    assert_eq!(plain.of_covariance(9, &[0.0; 3], &flat, 3).unwrap_err(), Error::EmptyView { view: 2 });
    assert!(matches!(plain.of_covariance(9, &[0.0; 2], &flat, 1), Err(Error::WrongLength { .. })));
    let ones = Matrix::from_fn(3, 3, |_, _| 1.0);
    assert!(matches!(plain.of_covariance(9, &[0.0; 3], &ones, 2), Err(Error::SingularView { rank: 1, .. })));
    let short = y.of_rows(&[0, 1, 2]).unwrap();
    assert!(matches!(fit(&x, &short), Err(Error::WrongLength { expected: 40, got: 3, .. })));
    assert!(matches!(Dataset::new(Matrix::zeros(40, 0)), Err(Error::EmptyTable { columns: 0, .. })));
    for request in [
        CanonicalCorrelation { ridge: -1.0, ..CanonicalCorrelation::default() },
        CanonicalCorrelation { ridge: f64::NAN, ..CanonicalCorrelation::default() },
        CanonicalCorrelation { rank: Some(0), ..CanonicalCorrelation::default() },
    ] {
        assert!(matches!(request.fit(&x, &y), Err(Error::OutOfRange { .. })));
    }
    let many = CanonicalCorrelation { n_components: Some(4), ..CanonicalCorrelation::default() };
    assert!(matches!(many.fit(&x, &y), Err(Error::TooManyComponents { asked: 4, max: 3, .. })));
    let found = fit(&x, &y).unwrap();
    assert!(matches!(found.transform(1, &x), Err(Error::ColumnCount { expected: 3, got: 4 })));
    assert!(matches!(found.predict(0, &x), Err(Error::ColumnCount { expected: 3, got: 4 })));
    assert!(matches!(found.scores(&x, &short), Err(Error::WrongLength { .. })));
}

/// A table of noise whose exact permutation p-value is about 0.046 (100 000 permutations): 199 cannot tell.
#[test]
fn shuffles_go_on_until_they_tell_significant_from_not() {
    use covary::family::{Family, Request, View};
    let (table, _) = simulate::ppca(Shape { rows: 16, columns: 11, n_components: 0 }, 953);
    let (x, y) = (columns(&table, 0..5), columns(&table, 5..11));
    let method = CanonicalCorrelation::default();
    let run = |threads, seed| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| method.sequential_tests(&x, &y, 0.05, seed).unwrap())
    };
    let found: Vec<_> = (0..3).map(|seed| run(2, seed)).collect();
    for test in &found {
        assert!(test.tests[0].p_value <= 0.05 && test.n_permutations > 199, "{test:?}");
    }
    assert_eq!(found[0], run(1, 0));
    assert!(found[0].tests[0].p_value != found[1].tests[0].p_value, "the seed is used");
    let early = |seed| method.permutation_tests(&x, &y, 199, seed).unwrap()[0].p_value;
    assert!((0..5).any(|seed| early(seed) != early(0)), "seeds next to each other share no permutation");
    let view = |name: &str, range: std::ops::Range<usize>| View {
        name: name.to_owned(),
        columns: range.map(|j| table.column_names()[j].clone()).collect(),
    };
    let request = Request { views: vec![view("x", 0..5), view("y", 5..11)], ..Request::new(Family::Pcca) };
    assert!(request.learn(&table).unwrap().n_shown() >= 1);
    // What is clear is told by 199.
    let (noise, _) = simulate::ppca(Shape { rows: 16, columns: 11, n_components: 0 }, 1);
    let clear = method.sequential_tests(&columns(&noise, 0..5), &columns(&noise, 5..11), 0.05, 0).unwrap();
    assert!(clear.tests[0].p_value > 0.2 && clear.n_permutations == 199, "{clear:?}");
}
