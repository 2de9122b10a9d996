//! Group factor analysis: planted patterns, gaps and missing views, units, order, limits.

use crate::common::assert_close;
use covary::data::simulate;
use covary::infer::{MeanField, Structured, Termination};
use covary::spec::NoiseFamily;
use covary::views::Activity;
use covary::{Coordinates, Dataset, Density, Error, Estimator, Fit, LinearGaussian, Matrix, Noise, Spec};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// In which views each planted component is active: two shared, one private to each.
const PLANTED: [[bool; 3]; 5] = [
    [true, true, true],
    [true, true, false],
    [true, false, false],
    [false, true, false],
    [false, false, true],
];

/// Views with the planted components, noise of another size in each.
fn planted(views: &[usize], rows: usize, seed: u64) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let view: Vec<usize> = views.iter().enumerate().flat_map(|(v, &size)| vec![v; size]).collect();
    let w = Matrix::from_fn(view.len(), PLANTED.len(), |j, i| {
        let e: f64 = StandardNormal.sample(&mut rng);
        if PLANTED[i][view[j]] { e } else { 0.0 }
    });
    let noise = view.iter().map(|&v| [0.3, 0.5, 0.8][v]).collect();
    let truth = LinearGaussian::new(w, vec![1.0; view.len()], Noise::Diagonal(noise)).unwrap();
    Dataset::new(truth.sample(rows, &mut rng)).unwrap()
}

/// A tenth of the cells, and one whole view of every fifth row.
fn with_gaps(whole: &Dataset, views: &[usize], seed: u64) -> Dataset {
    let mut gaps = simulate::hide(whole, 0.1, seed).into_values();
    for i in (0..gaps.n_rows()).step_by(5) {
        let view = i / 5 % views.len();
        let start: usize = views[..view].iter().sum();
        gaps.row_mut(i)[start..start + views[view]].fill(f64::NAN);
    }
    Dataset::new(gaps).unwrap()
}

/// In which views each component is active, sorted.
fn pattern(activity: &Activity) -> Vec<Vec<bool>> {
    let of = |i: usize| (0..activity.n_views()).map(|v| activity.is_active(v, i)).collect::<Vec<_>>();
    let mut found: Vec<_> = (0..activity.n_components()).map(of).collect();
    found.sort_by(|a, b| b.cmp(a));
    found
}

fn offered(views: &[usize]) -> Spec {
    Spec::of_views(12, views.to_vec())
}

const VIEWS: [usize; 3] = [10, 8, 12];

#[test]
fn a_planted_pattern_is_recovered_exactly() {
    let want: Vec<Vec<bool>> = PLANTED.iter().map(|p| p.to_vec()).collect();
    for seed in 0..10 {
        let whole = planted(&VIEWS, 300, seed);
        for table in [&with_gaps(&whole, &VIEWS, seed), &whole] {
            let fit = MeanField::default().fit(table, &offered(&VIEWS)).unwrap();
            assert_eq!(fit.report.termination, Termination::Converged);
            let activity = Activity::of(&fit.model, &VIEWS, table).unwrap();
            assert_eq!(fit.report.relevance.len(), 3 * 5);
            assert_eq!(pattern(&activity), want, "seed {seed}: {:?}", activity.signal);
            assert_eq!((0..5).filter(|&i| activity.is_shared(i)).count(), 2);
            // What is not active is zero.
            let w = fit.model.loadings();
            for (j, v) in VIEWS.iter().enumerate().flat_map(|(v, &size)| vec![v; size]).enumerate() {
                assert!((0..5).all(|i| (w[(j, i)] != 0.0) == activity.is_active(v, i)));
            }
            // Signal and noise make up a view.
            for (v, noise) in [0.3, 0.5, 0.8].into_iter().enumerate() {
                let start: usize = VIEWS[..v].iter().sum();
                let own = fit.model.noise_variances()[start];
                assert!((own / noise - 1.0).abs() < 0.1, "noise {own} for {noise}");
                let total: f64 = table.observed_variances()[start..start + VIEWS[v]].iter().sum();
                let explained: f64 = activity.explained_variance.row(v).iter().sum();
                assert!((explained + own * VIEWS[v] as f64 / total - 1.0).abs() < 0.05, "{explained}");
            }
        }
    }
}

#[test]
fn the_bound_never_falls() {
    let whole = planted(&[5, 4, 6], 80, 1);
    let gaps = with_gaps(&whole, &[5, 4, 6], 2);
    for table in [&whole, &gaps] {
        for (noise, standardize) in
            [(NoiseFamily::Isotropic, false), (NoiseFamily::Isotropic, true), (NoiseFamily::Diagonal, false)]
        {
            for method in [
                MeanField::default(),
                MeanField { noise_units: true, ..MeanField::default() },
                MeanField { expansion: false, ..MeanField::default() },
            ] {
                let spec = Spec { noise, standardize, allow_unidentified: true, ..offered(&[5, 4, 6]) };
                let method = MeanField { pruning: false, tolerance: 0.0, max_iterations: 60, ..method };
                let trace = method.fit(table, &spec).unwrap().report.trace;
                assert!(trace.windows(2).all(|l| l[1] >= l[0] - 1e-9 * l[0].abs()), "{method:?}: {trace:?}");
            }
        }
    }
}

/// Columns of the same components may differ by their signs.
#[track_caller]
fn same_scores(a: &Matrix, b: &Matrix, tolerance: f64) {
    assert_eq!(a.n_columns(), b.n_columns());
    for k in 0..a.n_columns() {
        let (a, b) = (a.column(k), b.column(k));
        let sign = a.iter().zip(&b).map(|(a, b)| a * b).sum::<f64>().signum();
        assert_close("scores", &a.iter().map(|a| sign * a).collect::<Vec<_>>(), &b, tolerance);
    }
}

fn scores(fit: &Fit, table: &Dataset) -> Matrix {
    fit.model.transform(table, Coordinates::Posterior).unwrap()
}

#[test]
fn units_and_order_of_views_do_not_matter() {
    let table = with_gaps(&planted(&VIEWS, 200, 3), &VIEWS, 3);
    let (n, d) = (table.n_rows(), table.n_columns());
    let method = MeanField { tolerance: 1e-11, max_iterations: 2000, ..MeanField::default() };
    let fit = method.fit(&table, &offered(&VIEWS)).unwrap();
    let factor = |j: usize| if (10..18).contains(&j) { 1e4 } else { 1.0 };
    let scaled = Dataset::new(Matrix::from_fn(n, d, |i, j| factor(j) * table.row(i)[j])).unwrap();
    let other = method.fit(&scaled, &offered(&VIEWS)).unwrap();
    same_scores(&scores(&fit, &table), &scores(&other, &scaled), 1e-4);
    // α is one over squared loadings.
    let q = fit.model.n_components();
    let alpha: Vec<f64> =
        (0..3 * q).map(|k| other.report.relevance[k] * if k / q == 1 { 1e8 } else { 1.0 }).collect();
    let active = Activity::of(&fit.model, &VIEWS, &table).unwrap();
    for k in (0..3 * q).filter(|k| active.is_active(k / q, k % q)) {
        assert!((alpha[k] / fit.report.relevance[k] - 1.0).abs() < 1e-3, "{k}");
    }
    let turned: Vec<usize> = (18..30).chain(0..18).collect();
    let permuted = Dataset::new(Matrix::from_fn(n, d, |i, j| table.row(i)[turned[j]])).unwrap();
    let other = method.fit(&permuted, &offered(&[12, 10, 8])).unwrap();
    same_scores(&scores(&fit, &table), &scores(&other, &permuted), 1e-4);
}

#[test]
fn one_view_is_bayesian_pca_to_the_bit() {
    let table = with_gaps(&planted(&[5, 4, 6], 60, 4), &[5, 4, 6], 4);
    for spec in [Spec::ppca(8), Spec { standardize: true, ..Spec::ppca(8) }, Spec::factor_analysis(8)] {
        let one = MeanField::default().fit(&table, &spec).unwrap();
        let same = MeanField::default().fit(&table, &Spec { views: vec![15], ..spec }).unwrap();
        assert_eq!((one.model, one.report), (same.model, same.report));
    }
}

#[test]
fn the_same_bits_on_one_thread_and_two() {
    let few = with_gaps(&planted(&VIEWS, 300, 6), &VIEWS, 6);
    let table = few.of_rows(&(0..6000).map(|i| i % 300).collect::<Vec<_>>()).unwrap();
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let method = MeanField { max_iterations: 6, ..MeanField::default() };
        pool.install(|| method.fit(&table, &offered(&VIEWS)).unwrap())
    };
    let (one, two) = (on(1), on(2));
    assert_eq!((one.model, one.report), (two.model, two.report));
}

/// Share of the hidden cells of whole missing views that lie in their 90 % intervals.
#[test]
fn intervals_of_a_missing_view_cover() {
    let (mut inside, mut cells) = (0, 0);
    for seed in 20..28 {
        let whole = planted(&VIEWS, 120, seed);
        let gaps = with_gaps(&whole, &VIEWS, seed);
        let fit = MeanField::default().fit(&gaps, &offered(&VIEWS)).unwrap();
        for cell in fit.model.impute(&gaps).unwrap().cells().iter().filter(|cell| cell.row % 5 == 0) {
            let (low, high) = cell.interval(0.9).unwrap();
            inside += usize::from((low..high).contains(&whole.values()[(cell.row, cell.column)]));
            cells += 1;
        }
    }
    let share = f64::from(inside as u32) / f64::from(cells as u32);
    assert!(cells > 1500 && (0.87..0.93).contains(&share), "{share} of {cells}");
}

#[test]
fn a_model_without_uncertainty_has_structural_zeros() {
    let w = Matrix::from_rows(&[[2.0, 0.0], [1.0, 0.0], [1.0, 3.0]]);
    let model = LinearGaussian::new(w, vec![0.0; 3], Noise::Isotropic(1.0)).unwrap();
    let table = Dataset::new(model.sample(400, &mut ChaCha8Rng::seed_from_u64(1))).unwrap();
    let activity = Activity::of(&model, &[2, 1], &table).unwrap();
    assert_eq!(activity.signal, Matrix::from_rows(&[[1.0, 0.0], [1.0, 1.0]]));
    assert!(activity.is_shared(0) && !activity.is_shared(1) && activity.is_active(1, 1));
    // 5 of 7 in the first view, 1 and 9 of 11 in the second, as far as 400 rows go.
    let r2 = &activity.explained_variance;
    assert_close("R²", r2.as_slice(), &[5.0 / 7.0, 0.0, 1.0 / 11.0, 9.0 / 11.0], 0.05);
    assert_eq!(Activity::of(&model, &[3, 0], &table).unwrap_err(), Error::EmptyView { view: 2 });
    let short = Error::WrongLength { what: "columns of all views", expected: 3, got: 2 };
    assert_eq!(Activity::of(&model, &[1, 1], &table).unwrap_err(), short);
    let narrow = Dataset::new(Matrix::from_fn(4, 2, |i, j| (i * j) as f64)).unwrap();
    assert!(matches!(Activity::of(&model, &[2, 1], &narrow), Err(Error::ColumnCount { .. })));
}

#[test]
fn bad_requests_are_named() {
    let table = planted(&[5, 4, 6], 40, 7);
    let refused = |views: &[usize], table: &Dataset| {
        MeanField::default().fit(table, &Spec::of_views(3, views.to_vec())).unwrap_err()
    };
    assert_eq!(refused(&[5, 0, 10], &table), Error::EmptyView { view: 2 });
    let short = Error::WrongLength { what: "columns of all views", expected: 15, got: 14 };
    assert_eq!(refused(&[5, 4, 5], &table), short);
    assert!(matches!(refused(&[usize::MAX, 2], &table), Error::WrongLength { .. }));
    let flat = Matrix::from_fn(40, 15, |i, j| if (5..9).contains(&j) { 2.0 } else { table.row(i)[j] });
    let flat = Dataset::new(flat).unwrap();
    let constant = refused(&[5, 4, 6], &flat);
    assert_eq!(constant, Error::ConstantView { view: 2, columns: 4 });
    assert!(constant.to_string().contains("view 2"));
    let most = Spec::of_views(15, vec![5, 4, 6]);
    assert!(matches!(MeanField::default().fit(&table, &most), Err(Error::TooManyComponents { max: 14, .. })));
    assert!(matches!(
        Structured::default().fit(&table, &offered(&[5, 4, 6])),
        Err(Error::Unsupported { what: "several views", .. })
    ));
}

/// Nothing but noise: no component is left, and a Gaussian with a variance for each view comes out.
#[test]
fn views_of_noise_have_no_components() {
    let noise = (0..15).map(|j| if j < 5 { 4.0 } else { 0.25 }).collect();
    let truth = LinearGaussian::new(Matrix::zeros(15, 0), vec![0.0; 15], Noise::Diagonal(noise)).unwrap();
    let table = Dataset::new(truth.sample(200, &mut ChaCha8Rng::seed_from_u64(8))).unwrap();
    let fit = MeanField::default().fit(&table, &offered(&[5, 10])).unwrap();
    assert_eq!((fit.model.n_components(), fit.report.relevance.len()), (0, 0));
    let psi = fit.model.noise_variances();
    assert!((psi[0] / 4.0 - 1.0).abs() < 0.1 && (psi[5] / 0.25 - 1.0).abs() < 0.1, "{psi:?}");
    let activity = Activity::of(&fit.model, &[5, 10], &table).unwrap();
    assert_eq!((activity.n_views(), activity.n_components()), (2, 0));
}
