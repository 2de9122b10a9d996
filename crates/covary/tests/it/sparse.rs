//! Sparse loadings: are planted zeros found, is the likelihood maximal on their support, and what does the penalty do? And sparse
//! components in the sense of dictionary learning.

use crate::common::{assert_close, flat, golden, matrix};
use crate::contract::on_threads;
use crate::dense::{Gaussian, normal};
use covary::data::{Shape, simulate};
use covary::family::{Components, Family, Request};
use covary::infer::{
    ElasticNet, Em, LatentMoments, Nonzero, PenalizedDecomposition, Penalties, SparseCca, SparseCoding,
    SparseComponents, SparseEm, Spectral, SpikeSlab,
};
use covary::io::model_file;
use covary::learned::Rows;
use covary::model::{Rotation, RotationSearch, rotate_model};
use covary::{Dataset, Density, Error, Estimator, LinearGaussian, Matrix, Noise, Spec};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Two components of four columns each, one of them in both, and three columns of noise.
fn planted(rows: usize, gaps: f64, seed: u64) -> (Dataset, LinearGaussian) {
    let mut w = Matrix::zeros(10, 2);
    for (j, k, value) in [
        (0, 0, 2.0),
        (1, 0, -1.5),
        (2, 0, 1.2),
        (3, 0, 1.0),
        (3, 1, 1.1),
        (4, 1, -1.4),
        (5, 1, 1.3),
        (6, 1, 0.9),
    ] {
        w[(j, k)] = value;
    }
    let mean = (0..10).map(f64::from).collect();
    let truth = LinearGaussian::new(w, mean, Noise::Isotropic(0.5)).unwrap();
    let whole = Dataset::new(truth.sample(rows, &mut ChaCha8Rng::seed_from_u64(seed))).unwrap();
    (if gaps > 0.0 { simulate::hide(&whole, gaps, seed) } else { whole }, truth)
}

fn zeros(w: &Matrix) -> Vec<bool> {
    w.as_slice().iter().map(|v| *v == 0.0).collect()
}

fn exact() -> SparseEm {
    SparseEm { em: Em { tolerance: 1e-12, ..Em::default() }, ..SparseEm::default() }
}

#[test]
fn planted_zeros_are_found_with_gaps_and_without_standardized_and_not() {
    for gaps in [0.0, 0.2] {
        for standardize in [false, true] {
            let (table, truth) = planted(600, gaps, 3);
            let spec = Spec { standardize, ..Spec::ppca(2) };
            let model = SparseEm::default().fit(&table, &spec).unwrap().model;
            assert!(model.has_fixed_axes());
            // Standardized columns have unequal noise, and the order of components is that of standardized loadings.
            let same = zeros(model.loadings()) == zeros(truth.loadings());
            let turned = Matrix::from_fn(10, 2, |j, k| truth.loadings()[(j, 1 - k)]);
            assert!(same || zeros(model.loadings()) == zeros(&turned), "{gaps} {standardize}");
        }
    }
}

#[test]
fn on_its_support_the_likelihood_is_at_its_maximum() {
    for gaps in [0.0, 0.2] {
        let (table, _) = planted(300, gaps, 5);
        let fit = exact().fit(&table, &Spec::ppca(2)).unwrap();
        let slope = LatentMoments::new(&fit.model, &table).unwrap().gradient();
        let scale = table.n_rows() as f64;
        for (w, slope) in fit.model.loadings().as_slice().iter().zip(slope.loadings.as_slice()) {
            assert!(*w == 0.0 || slope.abs() < 1e-5 * scale, "loading {w} has slope {slope}");
        }
        assert!(slope.mean.iter().all(|s| s.abs() < 1e-5 * scale), "{:?}", slope.mean);
        assert!(slope.noise.iter().sum::<f64>().abs() < 1e-5 * scale);
        // Without components' zeros the model can only be likelier.
        let dense = Em::default().fit(&table, &Spec::ppca(2)).unwrap().report.objective.value;
        assert!(fit.report.objective.value < dense);
        // And what is reported is the likelihood of a Gaussian of this covariance.
        let by_hand = Gaussian::of(&fit.model).log_likelihood(&table);
        assert_close("log-likelihood", &[fit.report.objective.value], &[by_hand], 1e-10);
    }
}

#[test]
fn without_a_penalty_it_is_probabilistic_pca() {
    let (table, _) = planted(200, 0.0, 7);
    let none = SparseEm { penalty: Some(0.0), ..exact() };
    let sparse = none.fit(&table, &Spec::ppca(2)).unwrap();
    let closed = Spectral::default().fit(&table, &Spec::ppca(2)).unwrap();
    assert_close("likelihood", &[sparse.report.objective.value], &[closed.report.objective.value], 1e-10);
    let (c, want) = (sparse.model.covariance(), closed.model.covariance());
    assert_close("covariance", c.as_slice(), want.as_slice(), 1e-8);
}

#[test]
fn a_penalty_is_stationary_where_loadings_are_left_and_holds_the_others_at_zero() {
    for gaps in [0.0, 0.3] {
        let (table, _) = planted(300, gaps, 9);
        let spec = Spec { standardize: true, ..Spec::ppca(2) };
        let penalty = 0.1;
        let fit = SparseEm { penalty: Some(penalty), ..exact() }.fit(&table, &spec).unwrap();
        let fell = fit.report.trace.windows(2).any(|t| t[1] < t[0] - 1e-9 * t[0].abs());
        assert!(!fell);
        let slope = LatentMoments::new(&fit.model, &table).unwrap().gradient().loadings;
        let (mut left, mut gone) = (0, 0);
        for j in 0..table.n_columns() {
            let sd = table.observed_variances()[j].sqrt();
            let most = penalty * table.n_observed_by_column()[j] as f64;
            for k in 0..2 {
                // ∂ℓ/∂(w/s) = s ∂ℓ/∂w
                let (w, slope) = (fit.model.loadings()[(j, k)], slope[(j, k)] * sd);
                if w == 0.0 {
                    gone += 1;
                    assert!(slope.abs() <= most * (1.0 + 1e-6), "a zero has slope {slope} of at most {most}");
                } else {
                    left += 1;
                    assert!((slope - most * w.signum()).abs() < 1e-4 * most, "{w}: {slope} {most}");
                }
            }
        }
        assert!(left > 4 && gone > 4, "{left} left, {gone} gone");
    }
}

#[test]
fn as_many_loadings_as_asked_for() {
    let (table, truth) = planted(500, 0.1, 11);
    for n in [1, 3, 4, 10] {
        let method = SparseEm { n_nonzero: Nonzero::Each(n), ..SparseEm::default() };
        let model = method.fit(&table, &Spec::ppca(2)).unwrap().model;
        for k in 0..2 {
            let left = model.loadings().column(k).iter().filter(|v| **v != 0.0).count();
            assert_eq!(left, n, "component {k}");
        }
        if n == 4 {
            assert_eq!(zeros(model.loadings()), zeros(truth.loadings()));
        }
    }
    let refused = |method: SparseEm| method.fit(&table, &Spec::ppca(2)).unwrap_err();
    for n in [0, 11] {
        let error = refused(SparseEm { n_nonzero: Nonzero::Each(n), ..SparseEm::default() });
        assert!(matches!(error, Error::OutOfRange { name: "n_nonzero", .. }), "{error}");
    }
    for penalty in [-1.0, f64::NAN, f64::INFINITY] {
        let error = refused(SparseEm { penalty: Some(penalty), ..SparseEm::default() });
        assert!(matches!(error, Error::OutOfRange { name: "penalty", .. }), "{error}");
    }
    let both = refused(SparseEm { n_nonzero: Nonzero::Each(2), penalty: Some(0.1), ..SparseEm::default() });
    assert!(matches!(both, Error::Unsupported { .. }), "{both}");
}

#[test]
fn a_penalty_that_leaves_nothing_leaves_a_gaussian_of_independent_columns() {
    let (table, _) = planted(100, 0.1, 13);
    let method = SparseEm { penalty: Some(1e6), ..SparseEm::default() };
    let model = method.fit(&table, &Spec::ppca(2)).unwrap().model;
    assert!(model.loadings().as_slice().iter().all(|v| *v == 0.0));
    assert_eq!(model.components().as_slice(), [0.0; 20]);
}

#[test]
fn a_component_of_noise_is_left_out_rather_than_made_up() {
    let (table, _) = simulate::ppca(Shape { rows: 200, columns: 6, n_components: 0 }, 1);
    let model = SparseEm::default().fit(&table, &Spec::ppca(2)).unwrap().model;
    let left = model.loadings().as_slice().iter().filter(|v| **v != 0.0).count();
    assert!(left <= 4, "{left} loadings of noise");
}

#[test]
fn sparse_axes_are_not_rotated_and_stay_in_files() {
    let (table, truth) = planted(600, 0.2, 3);
    let request = Request { n_components: Some(Components::Number(2)), ..Request::new(Family::Spca) };
    let learned = request.learn(&table).unwrap();
    let mut bytes = Vec::new();
    model_file::write(&learned, &mut bytes).unwrap();
    let back = model_file::read(bytes.as_slice()).unwrap();
    assert_eq!(back, learned);
    let model = &back.linear().unwrap().model;
    assert!(model.has_fixed_axes());
    let n_zeros = |w: &Matrix| w.as_slice().iter().filter(|v| **v == 0.0).count();
    assert_eq!(n_zeros(model.loadings()), n_zeros(truth.loadings()));
    assert_eq!(n_zeros(&model.components()), n_zeros(truth.loadings()));
    let rotated = rotate_model(model, &Rotation::Varimax { kaiser: true }, &RotationSearch::default());
    assert!(matches!(rotated, Err(Error::Unsupported { .. })));
    let rotation = ("varimax".to_owned(), Rotation::Varimax { kaiser: true });
    let asked = Request { rotation: Some(rotation), ..request };
    assert!(matches!(asked.learn(&table), Err(Error::NotForFamily { .. })));
    // Shares of variance are those of the columns of W: the model's factors are uncorrelated.
    let (shares, total) = (model.explained_variance_ratio(), model.total_variance());
    let scale = model.scale().unwrap();
    for (k, share) in shares.iter().enumerate() {
        let by_hand: f64 = (0..10).map(|j| (model.loadings()[(j, k)] / scale[j]).powi(2)).sum();
        assert_close("share", &[*share], &[by_hand / total], 1e-12);
    }
    // Gaps are filled as the dense Gaussian has it.
    let dense = Gaussian::of(model);
    for cell in learned.fill(Rows::Training).unwrap().cells(&table).unwrap().iter().take(50) {
        let gaps = dense.gaps(table.row(cell.row));
        let at = gaps.columns.iter().position(|&j| j == cell.column).unwrap();
        assert_close("imputed value", &[cell.mean], &[gaps.mean[at]], 1e-9);
    }
}

#[test]
fn sparse_coding_without_a_penalty_has_the_principal_axes() {
    let (table, _) = planted(80, 0.0, 17);
    let coding = SparseCoding { n_components: 3, alpha: 0.0, ..SparseCoding::default() };
    let found = coding.fit(&table, None).unwrap();
    let axes = Spectral::default().fit(&table, &Spec::ppca(3)).unwrap().model.components();
    assert_close("components", found.components.as_slice(), axes.as_slice(), 1e-8);
    // From anywhere else it ends in the same plane.
    let start = (&normal(80, 3, 1), &normal(3, 10, 2));
    let other = SparseCoding { tolerance: 1e-14, ..coding }.fit(&table, Some(start)).unwrap();
    let error = |found: &SparseComponents| *found.errors.last().unwrap();
    assert_close("objective", &[error(&other)], &[error(&found)], 1e-6);
}

#[test]
fn sparse_coding_never_raises_its_objective_and_finds_planted_zeros() {
    for gaps in [0.0, 0.2] {
        let (table, truth) = planted(300, gaps, 19);
        let coding = SparseCoding { n_components: 2, alpha: 8.0, ..SparseCoding::default() };
        let found = coding.fit(&table, None).unwrap();
        assert!(found.errors.windows(2).all(|e| e[1] <= e[0] * (1.0 + 1e-12)), "{:?}", found.errors);
        assert_eq!(zeros(&found.components.transpose()), zeros(truth.loadings()), "{gaps}");
    }
}

/// Without a penalty the objective at its minimum is half of what the leading singular values leave; with one it is that of its
/// optimality conditions: what each entry's slope may be is α.
#[test]
fn the_objective_of_sparse_coding_is_that_of_its_formula() {
    let (table, _) = planted(120, 0.0, 23);
    let mean = table.observed_means();
    let centered = Matrix::from_fn(120, 10, |i, j| table.row(i)[j] - mean[j]);
    let scatter = centered.t_dot(&centered);
    let (_, values) = LinearGaussian::from_covariance(vec![0.0; 10], &scatter).unwrap().principal_axes();
    for q in [2, 9] {
        let coding = SparseCoding { n_components: q, alpha: 0.0, ..SparseCoding::default() };
        let error = *coding.fit(&table, None).unwrap().errors.last().unwrap();
        let want = 0.5 * (scatter.trace() - values[..q].iter().sum::<f64>());
        assert_close("objective", &[error], &[want], 1e-8);
    }
    // One component: min over ‖u‖ ≤ 1 and v has u = X v / ‖X v‖ and v = soft(Xᵀu, α) and the objective follows from these.
    let alpha = 4.0;
    let coding = SparseCoding { n_components: 1, alpha, tolerance: 1e-15, ..SparseCoding::default() };
    let found = coding.fit(&table, None).unwrap();
    let unit = found.components.row(0);
    let scores: Vec<f64> = centered.rows().map(|r| r.iter().zip(unit).map(|(a, b)| a * b).sum()).collect();
    let length = scores.iter().map(|x: &f64| x * x).sum::<f64>().sqrt();
    let soft = |j: usize| {
        let z: f64 = (0..120).map(|i| centered[(i, j)] * scores[i] / length).sum();
        z.signum() * (z.abs() - alpha).max(0.0)
    };
    let v: Vec<f64> = (0..10).map(soft).collect();
    let left: f64 = (0..120)
        .flat_map(|i| (0..10).map(move |j| (i, j)))
        .map(|(i, j)| (centered[(i, j)] - scores[i] / length * v[j]).powi(2))
        .sum();
    let by_hand = 0.5 * left + alpha * v.iter().map(|v| v.abs()).sum::<f64>();
    assert_close("objective", &[*found.errors.last().unwrap()], &[by_hand], 1e-9);
    assert!(v.contains(&0.0) && v.iter().any(|v| *v != 0.0));
}

#[test]
fn threads_do_not_matter_to_sparse_components() {
    for gaps in [0.0, 0.2] {
        let (table, _) = simulate::ppca(Shape { rows: 60, columns: 150, n_components: 4 }, 7);
        let table = if gaps > 0.0 { simulate::hide(&table, gaps, 7) } else { table };
        let fits = |threads| {
            on_threads(threads, || {
                let penalized = SparseCoding { n_components: 5, alpha: 2.0, ..SparseCoding::default() };
                let counted = SparseCoding { n_nonzero: Some(9), ..penalized.clone() };
                let (_, covariance) = ElasticNet::moments(&table).unwrap();
                let net = ElasticNet { penalties: vec![0.5; 3], max_iterations: 50, ..ElasticNet::default() };
                (
                    penalized.fit(&table, None).unwrap(),
                    counted.fit(&table, None).unwrap(),
                    net.fit(&covariance).unwrap(),
                )
            })
        };
        assert!(fits(1) == fits(2), "{gaps}");
    }
}

#[test]
fn sparse_coding_keeps_as_many_entries_as_asked_for() {
    for gaps in [0.0, 0.2] {
        let (table, truth) = planted(300, gaps, 19);
        for n in [1, 4, 7] {
            let coding = SparseCoding { n_components: 2, n_nonzero: Some(n), ..SparseCoding::default() };
            let found = coding.fit(&table, None).unwrap();
            for component in found.components.rows() {
                assert_eq!(component.iter().filter(|v| **v != 0.0).count(), n, "{gaps}");
            }
            assert!(found.errors.windows(2).all(|e| e[1] <= e[0] * (1.0 + 1e-12)), "{:?}", found.errors);
            if n == 4 {
                assert_eq!(zeros(&found.components.transpose()), zeros(truth.loadings()), "{gaps}");
            }
        }
    }
    // All of them: the principal axes.
    let (table, _) = planted(80, 0.0, 17);
    let all = SparseCoding { n_components: 3, n_nonzero: Some(10), ..SparseCoding::default() };
    let axes = Spectral::default().fit(&table, &Spec::ppca(3)).unwrap().model.components();
    assert_close("components", all.fit(&table, None).unwrap().components.as_slice(), axes.as_slice(), 1e-8);
    for n in [0, 11] {
        let refused = SparseCoding { n_nonzero: Some(n), ..all.clone() }.fit(&table, None).unwrap_err();
        assert!(matches!(refused, Error::OutOfRange { name: "n_nonzero", .. }), "{refused}");
    }
}

/// Components of similar variance have principal axes that are mixed: what their largest entries are is found from a rotation, and
/// never at a higher objective than from the axes themselves.
#[test]
fn counted_entries_are_found_where_principal_axes_are_mixed() {
    let mut found = 0;
    for seed in 0..10 {
        // Two components of the same size on four columns each, of ten.
        let mut w = Matrix::zeros(10, 2);
        (0..4).for_each(|j| (w[(j, 0)], w[(j + 4, 1)]) = (1.0, if j % 2 == 0 { 1.0 } else { -1.0 }));
        let truth = LinearGaussian::new(w, vec![0.0; 10], Noise::Isotropic(0.3)).unwrap();
        let table = Dataset::new(truth.sample(200, &mut ChaCha8Rng::seed_from_u64(seed))).unwrap();
        let coding = SparseCoding { n_components: 2, n_nonzero: Some(4), ..SparseCoding::default() };
        let fit = coding.fit(&table, None).unwrap();
        let support = |w: &Matrix| {
            let mut of: Vec<Vec<bool>> =
                (0..2).map(|k| w.column(k).iter().map(|v| *v != 0.0).collect()).collect();
            of.sort();
            of
        };
        found += usize::from(support(&fit.components.transpose()) == support(truth.loadings()));
        let centered = Matrix::from_fn(200, 10, |i, j| table.row(i)[j] - table.observed_means()[j]);
        let axes = Spectral::default().fit(&table, &Spec::ppca(2)).unwrap().model.components();
        let from_axes = coding.fit(&table, Some((&centered.dot_t(&axes), &axes))).unwrap();
        let end = |fit: &SparseComponents| *fit.errors.last().unwrap();
        assert!(end(&fit) <= end(&from_axes) * (1.0 + 1e-9), "{} {}", end(&fit), end(&from_axes));
    }
    assert_eq!(found, 10);
}

#[test]
fn sparse_coding_names_what_it_cannot_take() {
    let (table, _) = planted(20, 0.0, 21);
    let two = SparseCoding { n_components: 2, ..SparseCoding::default() };
    for alpha in [-1.0, f64::NAN] {
        let refused = SparseCoding { alpha, ..two.clone() }.fit(&table, None).unwrap_err();
        assert!(matches!(refused, Error::OutOfRange { name: "alpha", .. }), "{refused}");
    }
    let refused = two.fit(&table, Some((&normal(19, 2, 1), &normal(2, 10, 1)))).unwrap_err();
    assert!(matches!(refused, Error::WrongLength { expected: 20, got: 19, .. }), "{refused}");
    let empty = Matrix::from_fn(4, 2, |i, j| if j == 0 { i as f64 } else { f64::NAN });
    let refused = two.fit(&Dataset::new(empty).unwrap(), None).unwrap_err();
    assert!(matches!(refused, Error::EmptyColumn { .. }), "{refused}");
}

/// Columns of `w` next to each other.
fn columns(w: &Matrix) -> Vec<f64> {
    (0..w.n_columns()).flat_map(|k| w.column(k)).collect()
}

#[test]
fn golden_pitprops() {
    let case = golden("part2", "spca_pitprops");
    let (input, want) = (&case["input"], &case["expected"]);
    let r = matrix(&input["correlation"]);
    let ridge = input["ridge"].as_f64().unwrap();
    let net = ElasticNet { penalties: flat(&input["l1"]), ridge, ..ElasticNet::default() };
    let found = net.fit(&r).unwrap();
    let close = |got: f64, want: f64, tolerance: f64| assert!((got - want).abs() < tolerance, "{got} {want}");
    for (got, want) in found.axes.as_slice().iter().zip(matrix(&want["loadings"]).as_slice()) {
        close(*got, *want, 1e-6);
    }
    let n_nonzero = |k: usize| found.axes.column(k).iter().filter(|v| **v != 0.0).count();
    assert_eq!((0..6).map(n_nonzero).collect::<Vec<_>>(), [7, 4, 4, 1, 1, 1]);
    for (what, got) in
        [("adjusted_variance_pct", &found.adjusted_variance), ("variance_pct", &found.variance)]
    {
        got.iter().zip(flat(&want[what])).for_each(|(got, want)| close(100.0 * got / r.trace(), want, 1e-5));
    }
    // As published, to the digits that are.
    let published = flat(&want["published"]["adjusted_variance_pct"]);
    found
        .adjusted_variance
        .iter()
        .zip(published)
        .for_each(|(got, want)| close(100.0 * got / 13.0, want, 0.06));
    assert!(found.trace.windows(2).all(|t| t[1] <= t[0] + 1e-12), "the objective never rises");
}

#[test]
fn an_elastic_net_without_penalties_has_the_principal_axes() {
    let r = matrix(&golden("part2", "spca_pitprops")["input"]["correlation"]);
    let found = ElasticNet { penalties: vec![0.0; 3], ridge: 0.0, ..ElasticNet::default() }.fit(&r).unwrap();
    let model = LinearGaussian::from_covariance(vec![0.0; 13], &r).unwrap();
    let (axes, variances) = model.principal_axes();
    assert_close("axes", &columns(&found.axes), &axes.as_slice()[..39], 1e-8);
    assert_close("variances", &found.adjusted_variance, &variances[..3], 1e-8);
    for penalties in [vec![-1.0], vec![f64::NAN], vec![0.1; 14]] {
        let refused = ElasticNet { penalties, ..ElasticNet::default() }.fit(&r).unwrap_err();
        assert!(matches!(refused, Error::OutOfRange { .. }), "{refused}");
    }
}

#[test]
fn golden_penalized_matrix_decomposition() {
    let case = golden("part2", "pmd");
    let x = matrix(&case["input"]["X"]);
    let settings = case["input"]["settings"].as_array().unwrap();
    for (setting, want) in settings.iter().zip(case["expected"]["cases"].as_array().unwrap()) {
        let (left_bound, right_bound) = (setting["c1"].as_f64(), setting["c2"].as_f64());
        let method = PenalizedDecomposition {
            n_components: 2,
            left_bound,
            right_bound,
            ..PenalizedDecomposition::default()
        };
        for (k, product) in method.fit(&x).unwrap().iter().enumerate() {
            assert_close("value", &[product.value], &[want["d"][k].as_f64().unwrap()], 1e-7);
            // A pair of vectors may change signs together.
            let v = flat(&want["v"][k]);
            let sign = (product.right.iter().zip(&v).map(|(a, b)| a * b).sum::<f64>()).signum();
            let right: Vec<f64> = product.right.iter().map(|a| sign * a).collect();
            assert_close("right", &right, &v, 1e-7);
            if let Some(want) = want["u"].get(k) {
                let left: Vec<f64> = product.left.iter().map(|a| sign * a).collect();
                assert_close("left", &left, &flat(want), 1e-7);
            }
        }
    }
}

/// `uᵀ X v` never falls from one iteration to the next, and no vector is longer than its bounds.
#[test]
fn the_objective_of_the_penalized_decomposition_never_falls() {
    for seed in 0..5 {
        let x = normal(12, 8, seed);
        for (left_bound, right_bound) in [(None, Some(1.7)), (Some(2.0), Some(1.4)), (Some(1.5), None)] {
            let after = |max_iterations: usize| {
                let method = PenalizedDecomposition {
                    left_bound,
                    right_bound,
                    max_iterations,
                    ..PenalizedDecomposition::default()
                };
                method.fit(&x).unwrap().remove(0)
            };
            let values: Vec<f64> = (1..40).map(|n| after(n).value).collect();
            assert!(values.windows(2).all(|v| v[1] >= v[0] - 1e-12), "{values:?}");
            assert!(values[38] > values[0], "{values:?}");
            let end = after(1000);
            for (vector, bound) in [(&end.left, left_bound), (&end.right, right_bound)] {
                assert!(vector.iter().map(|v| v * v).sum::<f64>() <= 1.0 + 1e-12);
                let size: f64 = vector.iter().map(|v| v.abs()).sum();
                assert!(bound.is_none_or(|bound| size <= bound + 1e-9), "{size} {bound:?}");
            }
        }
    }
}

#[test]
fn bounds_that_are_not_active_give_the_singular_value_decomposition() {
    let x = matrix(&golden("part2", "pmd")["input"]["X"]);
    let method = PenalizedDecomposition { n_components: 3, ..PenalizedDecomposition::default() };
    let wide = PenalizedDecomposition { right_bound: Some(8.0_f64.sqrt()), ..method.clone() };
    let (free, wide) = (method.fit(&x).unwrap(), wide.fit(&x).unwrap());
    let gram = x.t_dot(&x);
    for (one, other) in free.iter().zip(&wide) {
        assert_close("value", &[one.value], &[other.value], 1e-12);
        // XᵀX v = d² v
        let image: Vec<f64> =
            gram.rows().map(|row| row.iter().zip(&one.right).map(|(a, b)| a * b).sum()).collect();
        let want: Vec<f64> = one.right.iter().map(|v| one.value.powi(2) * v).collect();
        assert_close("eigenvector", &image, &want, 1e-6);
    }
    let refused = PenalizedDecomposition { left_bound: Some(0.5), ..method }.fit(&x).unwrap_err();
    assert!(matches!(refused, Error::OutOfRange { name: "left_bound", .. }), "{refused}");
}

#[test]
fn spike_and_slab_selects_the_columns_that_have_a_part() {
    for (gaps, seeds) in [(0.0, 30..35), (0.2, 40..45)] {
        for seed in seeds {
            for standardize in [false, true] {
                let (table, truth) = planted(400, gaps, seed);
                let spec = Spec { standardize, ..Spec::ppca(2) };
                let fit = SpikeSlab::default().fit(&table, &spec).unwrap();
                let part = |&j: &usize| truth.loadings().row(j).iter().any(|w| *w != 0.0);
                let probable = fit.model.inclusion().unwrap();
                let selected: Vec<usize> = (0..10).filter(|&j| probable[j] > 0.5).collect();
                let with_part: Vec<usize> = (0..10).filter(part).collect();
                // Standardized, columns of noise have more of it than the one variance that all share, and may seem to have a part.
                let found = with_part.iter().all(|j| selected.contains(j));
                assert!(found && (standardize || selected == with_part), "{gaps} {seed}: {probable:?}");
                let fell = fit.report.trace.windows(2).any(|t| t[1] < t[0] - 1e-9 * t[0].abs());
                assert!(!fell, "the bound never falls");
            }
        }
    }
    let (table, _) = planted(50, 0.1, 1);
    let refused = SpikeSlab::default().fit(&table, &Spec::ppca(10)).unwrap_err();
    assert!(matches!(refused, Error::TooManyComponents { asked: 10, .. }), "{refused}");
    let refused = SpikeSlab { slab: 0.0, ..SpikeSlab::default() }.fit(&table, &Spec::ppca(1)).unwrap_err();
    assert!(matches!(refused, Error::OutOfRange { name: "slab", .. }), "{refused}");
    let refused = SpikeSlab::default().fit(&table, &Spec::factor_analysis(1)).unwrap_err();
    assert_eq!(refused.to_string(), "spike-slab does not fit diagonal noise; use `sparse-em`");
}

/// The factors of the posterior are each other's optimum: the equations of [M 2.9.3], column by column over observed cells,
/// written down with dense matrices.
#[test]
fn spike_and_slab_ends_where_its_equations_hold() {
    for gaps in [0.0, 0.2] {
        for standardize in [false, true] {
            let (table, _) = planted(120, gaps, 50);
            let (spec, d, q) = (Spec { standardize, ..Spec::ppca(2) }, 10, 2);
            let exact = SpikeSlab { tolerance: 1e-13, max_iterations: 5000, ..SpikeSlab::default() };
            let model = exact.fit(&table, &spec).unwrap().model;
            let u = model.uncertainty().unwrap();
            let sd: Vec<f64> = table.observed_variances().iter().map(|v| v.sqrt()).collect();
            let pooled = (sd.iter().map(|s| s * s).sum::<f64>() / 10.0).sqrt();
            let unit = |j: usize| if standardize { sd[j] } else { pooled };
            let tau = unit(0).powi(2) / model.noise_variances()[0];
            let w = |j: usize, k: usize| model.loadings()[(j, k)] / unit(j);
            let t = |i: usize, j: usize| (table.row(i)[j] - model.mean()[j]) / unit(j);
            // Scores of each row, and sums of their second moments over the rows that have a column.
            let mut second = vec![Matrix::zeros(q, q); d];
            let (mut cross, mut sums) = (Matrix::zeros(d, q), Matrix::zeros(d, q));
            for i in 0..table.n_rows() {
                let seen: Vec<usize> = (0..d).filter(|&j| !table.row(i)[j].is_nan()).collect();
                let mut g = Matrix::identity(q);
                let mut h = [0.0; 2];
                for &j in &seen {
                    for a in 0..q {
                        h[a] += tau * w(j, a) * t(i, j);
                        for b in 0..q {
                            g[(a, b)] += tau * w(j, a) * w(j, b) + u.relative[j][(a, b)];
                        }
                    }
                }
                let det = g[(0, 0)] * g[(1, 1)] - g[(0, 1)] * g[(1, 0)];
                let v = [[g[(1, 1)] / det, -g[(0, 1)] / det], [-g[(1, 0)] / det, g[(0, 0)] / det]];
                let x = [v[0][0] * h[0] + v[0][1] * h[1], v[1][0] * h[0] + v[1][1] * h[1]];
                for &j in &seen {
                    for a in 0..q {
                        cross[(j, a)] += x[a] * t(i, j);
                        sums[(j, a)] += t(i, j) / q as f64 - w(j, a) * x[a];
                        for b in 0..q {
                            second[j][(a, b)] += v[a][b] + x[a] * x[b];
                        }
                    }
                }
            }
            let z = model.inclusion().unwrap();
            for j in 0..d {
                // μ leaves no residual.
                let left: f64 = sums.row(j).iter().sum();
                assert!(left.abs() < 1e-4, "{gaps} {standardize} {j}: {left}");
                let s = {
                    let p = |a: usize, b: usize| tau * (second[j][(a, b)] + if a == b { 1.0 } else { 0.0 });
                    let det = p(0, 0) * p(1, 1) - p(0, 1) * p(1, 0);
                    [[p(1, 1) / det, -p(0, 1) / det], [-p(1, 0) / det, p(0, 0) / det]]
                };
                let m: Vec<f64> =
                    (0..q).map(|a| tau * (s[a][0] * cross[(j, 0)] + s[a][1] * cross[(j, 1)])).collect();
                for a in 0..q {
                    assert!(
                        (w(j, a) - z[j] * m[a]).abs() < 1e-5,
                        "{gaps} {standardize} {j}: {} {}",
                        w(j, a),
                        m[a]
                    );
                    for b in 0..q {
                        let want = tau * (z[j] * s[a][b] + z[j] * (1.0 - z[j]) * m[a] * m[b]);
                        assert!((u.relative[j][(a, b)] - want).abs() < 1e-5 * (1.0 + want.abs()));
                    }
                }
            }
        }
    }
}

/// Two views of these numbers of columns, the first three of x and the first four of y sharing a factor.
fn two_views(rows: usize, columns: [usize; 2], gaps: f64, seed: u64) -> [Dataset; 2] {
    let shared = normal(rows, 1, seed);
    let view = |v: usize| {
        let noise = normal(rows, columns[v], seed + 1 + v as u64);
        let with = 3 + v;
        let value = |i: usize, j: usize| {
            let sign = if j.is_multiple_of(2) { 1.0 } else { -1.0 };
            5.0 + (j + 1) as f64 * (noise[(i, j)] + if j < with { sign * 1.5 * shared[(i, 0)] } else { 0.0 })
        };
        let whole = Dataset::new(Matrix::from_fn(rows, columns[v], value)).unwrap();
        if gaps > 0.0 { simulate::hide(&whole, gaps, seed + 9 + v as u64) } else { whole }
    };
    [view(0), view(1)]
}

/// Correlations of the columns of two complete views, by their definition.
fn correlations(x: &Dataset, y: &Dataset) -> Matrix {
    let column = |data: &Dataset, j: usize| -> Vec<f64> {
        let cells: Vec<f64> = (0..data.n_rows()).map(|i| data.row(i)[j]).collect();
        let mean = cells.iter().sum::<f64>() / cells.len() as f64;
        let length = cells.iter().map(|c| (c - mean).powi(2)).sum::<f64>().sqrt();
        cells.iter().map(|c| (c - mean) / length).collect()
    };
    Matrix::from_fn(x.n_columns(), y.n_columns(), |i, j| {
        column(x, i).iter().zip(column(y, j)).map(|(a, b)| a * b).sum()
    })
}

#[test]
fn sparse_canonical_vectors_without_bounds_are_singular_vectors_of_the_correlations() {
    let [x, y] = two_views(80, [6, 7], 0.0, 60);
    let method = SparseCca {
        n_components: 2,
        penalties: Penalties::Given([1.0, 1.0]),
        max_iterations: 10_000,
        tolerance: 1e-13,
    };
    let found = method.fit(&x, &y).unwrap();
    let c = correlations(&x, &y);
    for k in 0..2 {
        let [u, v] = [found.weights[0].column(k), found.weights[1].column(k)];
        let image: Vec<f64> = c.rows().map(|row| row.iter().zip(&v).map(|(a, b)| a * b).sum()).collect();
        let value: f64 = image.iter().zip(&u).map(|(a, b)| a * b).sum();
        let want: Vec<f64> = u.iter().map(|u| value * u).collect();
        assert_close("C v = d u", &image, &want, 1e-7);
    }
    // The correlation that is reported is that of the variates.
    let variates = [found.transform(0, &x).unwrap(), found.transform(1, &y).unwrap()];
    for k in 0..2 {
        let of = |m: &Matrix| Dataset::new(Matrix::from_fn(80, 1, |i, _| m[(i, k)])).unwrap();
        let r = correlations(&of(&variates[0]), &of(&variates[1]))[(0, 0)];
        assert_close("correlation", &[found.correlations[k]], &[r], 1e-10);
    }
}

#[test]
fn sparse_canonical_vectors_are_the_penalized_decomposition_of_the_correlations() {
    // Few rows and many columns, for which the matrix of correlations is never there, and many rows.
    for (rows, columns) in [(30, [100, 120]), (200, [10, 12])] {
        let [x, y] = two_views(rows, columns, 0.0, 70);
        let penalties = [0.3, 0.4];
        let method = SparseCca {
            n_components: 2,
            penalties: Penalties::Given(penalties),
            tolerance: 1e-13,
            ..SparseCca::default()
        };
        let found = method.fit(&x, &y).unwrap();
        let bound = |v: usize| Some((penalties[v] * (columns[v] as f64).sqrt()).max(1.0));
        let dense = PenalizedDecomposition {
            n_components: 2,
            left_bound: bound(0),
            right_bound: bound(1),
            ..PenalizedDecomposition::default()
        };
        for (k, product) in dense.fit(&correlations(&x, &y)).unwrap().iter().enumerate() {
            let u = found.weights[0].column(k);
            let sign = u.iter().zip(&product.left).map(|(a, b)| a * b).sum::<f64>().signum();
            let left: Vec<f64> = product.left.iter().map(|v| sign * v).collect();
            assert_close("left", &u, &left, 1e-5);
            assert!(u.iter().filter(|v| **v == 0.0).count() > columns[0] / 3);
        }
    }
}

#[test]
fn permutations_choose_penalties_that_find_planted_columns() {
    for gaps in [0.0, 0.2] {
        let [x, y] = two_views(200, [12, 15], gaps, 80);
        let bits = |threads| {
            on_threads(threads, || {
                let found = SparseCca::default().fit(&x, &y).unwrap();
                (found.weights.clone(), found.tried.iter().map(|t| t.z.to_bits()).collect::<Vec<_>>(), found)
            })
        };
        let (one, two) = (bits(1), bits(2));
        assert!(one.0 == two.0 && one.1 == two.1, "threads");
        let found = one.2;
        let largest = |view: usize, n: usize| {
            let w = found.weights[view].column(0);
            let mut order: Vec<usize> = (0..w.len()).collect();
            order.sort_by(|&a, &b| w[b].abs().total_cmp(&w[a].abs()));
            order.truncate(n);
            order.sort_unstable();
            order
        };
        assert_eq!((largest(0, 3), largest(1, 4)), (vec![0, 1, 2], vec![0, 1, 2, 3]), "{gaps}");
        assert!(found.correlations[0] > 0.8, "{gaps}: {:?}", found.correlations);
        let chosen = found.tried.iter().find(|t| t.penalty == found.penalties[0]).unwrap();
        assert!(chosen.p_value < 0.05 && found.tried.iter().all(|t| t.z <= chosen.z));
    }
}

#[test]
fn sparse_canonical_correlation_names_what_it_cannot_take() {
    let [x, y] = two_views(20, [4, 5], 0.0, 1);
    let given = |penalties| SparseCca { penalties: Penalties::Given(penalties), ..SparseCca::default() };
    for bad in [[0.0, 0.5], [0.5, 1.5], [f64::NAN, 0.5]] {
        let refused = given(bad).fit(&x, &y).unwrap_err();
        assert!(matches!(refused, Error::OutOfRange { name: "a penalty", .. }), "{refused}");
    }
    let refused = SparseCca { n_components: 5, ..given([0.5; 2]) }.fit(&x, &y).unwrap_err();
    assert!(matches!(refused, Error::TooManyComponents { asked: 5, max: 4, .. }), "{refused}");
    let [short, _] = two_views(19, [4, 5], 0.0, 1);
    assert!(matches!(given([0.5; 2]).fit(&short, &y), Err(Error::WrongLength { .. })));
    let empty =
        Dataset::new(Matrix::from_fn(20, 2, |i, j| if j == 0 { i as f64 } else { f64::NAN })).unwrap();
    assert!(matches!(given([0.5; 2]).fit(&x, &empty), Err(Error::EmptyColumn { .. })));
    let refused = given([0.5; 2]).fit(&x, &y).unwrap().transform(0, &y).unwrap_err();
    assert!(matches!(refused, Error::ColumnCount { expected: 4, got: 5 }), "{refused}");
}
