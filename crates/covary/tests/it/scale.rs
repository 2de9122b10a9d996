//! A model knows the scale it was fitted in: axes, shares of variance, projections, reconstructions and squared
//! prediction errors are held against dense formulas in that scale, on columns whose units run from 1e-3 to 1e4.

use crate::common::{assert_close, shared_data};
use crate::contract::{Gaps, variational_cases};
use crate::dense::{self, Gaussian, block, observed, solve};
use crate::scikit_learn;
use covary::data::{Shape, simulate};
use covary::infer::{ClassConditional, MixtureEm, Spectral};
use covary::io::model_file;
use covary::learned::Learned;
use covary::{
    Coordinates, Dataset, Density, Estimator, LinearGaussian, Matrix, Method, Noise, Reconstruction, Spec,
};

/// The columns in units from 1e-3 to 1e4 and away from zero; raw and standardized, complete and, if asked, with gaps.
pub(crate) fn tables(table: &Dataset, with_gaps: bool) -> Vec<(Dataset, bool)> {
    let last = (table.n_columns() - 1) as f64;
    let unit = |j: usize| 10_f64.powf(-3.0 + 7.0 * (j as f64) / last);
    let wild = Matrix::from_fn(table.n_rows(), table.n_columns(), |i, j| unit(j) * (table.row(i)[j] + 2.0));
    let complete = Dataset::new(wild).expect("a valid table");
    let mut tables = vec![complete.clone()];
    if with_gaps {
        tables.push(simulate::hide(&complete, 0.15, 7));
    }
    tables.into_iter().flat_map(|table| [(table.clone(), false), (table, true)]).collect()
}

pub(crate) fn standardized(data: &Dataset) -> Dataset {
    let (means, variances) = (data.observed_means().to_vec(), data.observed_variances().to_vec());
    let z = |i: usize, j: usize| (data.row(i)[j] - means[j]) / variances[j].sqrt();
    Dataset::new(Matrix::from_fn(data.n_rows(), data.n_columns(), z)).expect("a valid table")
}

/// Every answer that depends on units, against dense formulas in the scale of the fit; every answer that does not,
/// against dense formulas in the units of the table. Parameters are taken as known.
#[track_caller]
pub(crate) fn check(model: &LinearGaussian, data: &Dataset, standardize: bool) {
    const TOLERANCE: f64 = 1e-8;
    let model = &model.plug_in();
    let (n, d, q) = (data.n_rows(), data.n_columns(), model.n_components());
    let scale: Vec<f64> = if standardize {
        let deviations: Vec<f64> = data.observed_variances().iter().map(|v| v.sqrt()).collect();
        assert_close("scale", model.scale().expect("standardized columns"), &deviations, 1e-12);
        deviations
    } else {
        assert!(model.scale().is_none(), "raw columns have no scale");
        vec![1.0; d]
    };
    let dense = Gaussian::of(model);
    let r = Matrix::from_fn(d, d, |i, j| dense.covariance[(i, j)] / (scale[i] * scale[j]));
    let trace: f64 = (0..d).map(|j| r[(j, j)]).sum();
    let w = Matrix::from_fn(d, q, |j, k| model.loadings()[(j, k)] / scale[j]);
    let psi: Vec<f64> = (0..d).map(|j| model.noise().variance(j) / (scale[j] * scale[j])).collect();
    let isotropic = psi.iter().all(|v| (v / psi[0] - 1.0).abs() < 1e-9);

    // Axes: orthonormal, spanning the signal, and of it the principal ones; signs by the rule.
    let (u, along) = model.principal_axes();
    assert_eq!(u, model.components());
    let product = |a: &Matrix, b: &Matrix| {
        Matrix::from_fn(a.n_rows(), b.n_columns(), |i, j| {
            (0..a.n_columns()).map(|k| a[(i, k)] * b[(k, j)]).sum()
        })
    };
    let ut = u.transpose();
    assert_close("U Uᵀ", product(&u, &ut).as_slice(), Matrix::identity(q).as_slice(), TOLERANCE);
    let size = w.as_slice().iter().fold(0.0_f64, |m, v| m.max(v.abs())).max(f64::MIN_POSITIVE);
    let projected = product(&ut, &product(&u, &w));
    for (a, b) in projected.as_slice().iter().zip(w.as_slice()) {
        assert!((a - b).abs() < TOLERANCE * size, "the axes do not span the loadings");
    }
    let signal = product(&product(&u, &product(&w, &w.transpose())), &ut);
    for k in 0..q {
        for l in 0..k {
            assert!(signal[(k, l)].abs() < TOLERANCE * signal[(0, 0)], "axes are not principal");
        }
        let before = if k == 0 { f64::INFINITY } else { signal[(k - 1, k - 1)] };
        assert!(signal[(k, k)] <= before + TOLERANCE * signal[(0, 0)], "axes are not in order");
        let largest =
            u.row(k).iter().fold(0.0_f64, |m: f64, v| if v.abs() > m.abs() + 1e-12 { *v } else { m });
        assert!(largest > 0.0, "the largest entry of an axis is positive");
    }
    let variance = |k: usize| -> f64 {
        (0..d).flat_map(|i| (0..d).map(move |j| (i, j))).map(|(i, j)| u[(k, i)] * r[(i, j)] * u[(k, j)]).sum()
    };
    let variances: Vec<f64> = (0..q).map(variance).collect();
    assert_close("variance along an axis", &along, &variances, TOLERANCE);

    // Proportions of variance: eigenvalues of the fitted covariance, or ‖w‖² of factors.
    let norms: Vec<f64> = (0..q).map(|k| w.column(k).iter().map(|v| v * v).sum()).collect();
    let explained = if isotropic { &variances } else { &norms };
    assert_close("explained variance", &model.explained_variance(), explained, TOLERANCE);
    let shares: Vec<f64> = explained.iter().map(|v| v / trace).collect();
    assert_close("explained variance ratio", &model.explained_variance_ratio(), &shares, TOLERANCE);
    assert!(shares.iter().sum::<f64>() < 1.0 + 1e-12, "shares of a whole");
    let net: Vec<f64> = norms.iter().map(|v| v / trace).collect();
    assert_close("signal variance ratio", &model.signal_variance_ratio(), &net, TOLERANCE);
    assert_close("total variance", &[model.total_variance()], &[trace], TOLERANCE);

    // Scores and rows.
    let (mean, loadings) = (model.mean(), model.loadings());
    let asked = |how| model.transform(data, how).unwrap();
    let (projection, whitened) = (asked(Coordinates::Projection), asked(Coordinates::Whitened));
    let (posterior, bartlett) = (asked(Coordinates::Posterior), asked(Coordinates::Bartlett));
    let orthogonal = model.reconstruct(data, Reconstruction::Orthogonal).unwrap();
    let smooth = model.reconstruct(data, Reconstruction::PosteriorMean).unwrap();
    let decoded = model.decode(&posterior).unwrap();
    let density = model.log_density(data).unwrap();
    let distances = model.outlyingness(data).unwrap();
    let (of_row, spreads) = model.projection_covariances(data, &u).unwrap();
    for i in 0..n {
        let row = data.row(i);
        let gaps = dense.gaps(row);
        let mut filled = row.to_vec();
        gaps.columns.iter().zip(&gaps.mean).for_each(|(&j, m)| filled[j] = *m);
        let z: Vec<f64> = (0..d).map(|j| (filled[j] - mean[j]) / scale[j]).collect();
        let scores: Vec<f64> = (0..q).map(|k| (0..d).map(|j| u[(k, j)] * z[j]).sum()).collect();
        assert_close("projection", projection.row(i), &scores, TOLERANCE);
        let unit: Vec<f64> = (0..q).map(|k| scores[k] / variances[k].sqrt()).collect();
        assert_close("whitened", whitened.row(i), &unit, TOLERANCE);
        let at = |j: usize| (0..q).map(|k| u[(k, j)] * scores[k]).sum::<f64>();
        for j in 0..d {
            let want = mean[j] + scale[j] * at(j);
            let unit = r[(j, j)].sqrt() * scale[j];
            assert!((orthogonal[(i, j)] - want).abs() < TOLERANCE * unit * 10.0, "orthogonal reconstruction");
        }
        let spread = Matrix::from_fn(q, q, |k, l| {
            let mut sum = 0.0;
            for (a, &i) in gaps.columns.iter().enumerate() {
                for (b, &j) in gaps.columns.iter().enumerate() {
                    sum += u[(k, i)] / scale[i] * gaps.covariance[(a, b)] * u[(l, j)] / scale[j];
                }
            }
            sum
        });
        let got = &spreads[of_row[i]];
        let most = variances.first().copied().unwrap_or(0.0);
        for (a, b) in got.as_slice().iter().zip(spread.as_slice()) {
            assert!((a - b).abs() <= TOLERANCE * most, "covariance of a projection");
        }

        // x̂ = W_Oᵀ C_OO⁻¹ y, in the scale of the fit for the sake of conditioning.
        let seen = observed(row);
        if seen.is_empty() {
            continue;
        }
        let y = Matrix::from_fn(seen.len(), 1, |a, _| z[seen[a]]);
        let solved = solve(&block(&r, &seen, &seen), &y);
        let x: Vec<f64> =
            (0..q).map(|k| seen.iter().enumerate().map(|(a, &j)| w[(j, k)] * solved[(a, 0)]).sum()).collect();
        assert_close("posterior scores", posterior.row(i), &x, 1e-7);
        for j in 0..d {
            let want = mean[j] + loadings.row(j).iter().zip(&x).map(|(w, x)| w * x).sum::<f64>();
            let unit = r[(j, j)].sqrt() * scale[j];
            assert!((smooth[(i, j)] - want).abs() < 1e-7 * unit * 10.0, "posterior reconstruction");
            assert!((decoded[(i, j)] - want).abs() < 1e-7 * unit * 10.0, "inverse transform");
        }
        let scaled: Vec<f64> = (0..d).map(|j| if row[j].is_nan() { f64::NAN } else { z[j] }).collect();
        let of_scale = Gaussian { mean: vec![0.0; d], covariance: r.clone() };
        let units: f64 = seen.iter().map(|&j| scale[j].ln()).sum();
        assert_close("log-density", &[density[i]], &[of_scale.log_density(&scaled) - units], 1e-7);
        let far = of_scale.mahalanobis(&scaled);
        assert_close("Mahalanobis distance", &[distances[i].mahalanobis], &[far], 1e-7);

        // Least squares weighted by the noise, where the cells determine every score.
        if q == 0 || seen.len() < q + 2 || q > 2 {
            continue;
        }
        let normal = Matrix::from_fn(q, q, |k, l| seen.iter().map(|&j| w[(j, k)] * w[(j, l)] / psi[j]).sum());
        let side = Matrix::from_fn(q, 1, |k, _| seen.iter().map(|&j| w[(j, k)] * z[j] / psi[j]).sum());
        let least = solve(&normal, &side);
        let x: Vec<f64> = (0..q).map(|k| least[(k, 0)]).collect();
        assert_close("Bartlett scores", bartlett.row(i), &x, 1e-6);
        let residual = |&j: &usize| z[j] - (0..q).map(|k| w[(j, k)] * x[k]).sum::<f64>();
        let spe: f64 = seen.iter().map(|j| residual(j).powi(2)).sum();
        let room: f64 = seen.iter().map(|&j| z[j] * z[j]).sum();
        let got = distances[i].squared_prediction_error;
        assert!((got - spe).abs() < 1e-7 * room, "squared prediction error: got {got}, want {spe}");
        if isotropic {
            let sum = distances[i].t_squared + got / psi[0];
            assert!((sum - far).abs() < 1e-5 * (1.0 + far), "T² + SPE/σ² is {sum}, not {far}");
        }
    }

    // C⁻¹ C = I, both in the scale of the fit.
    let precision = model.precision();
    let precision = Matrix::from_fn(d, d, |i, j| precision[(i, j)] * scale[i] * scale[j]);
    assert_close("covariance", model.covariance().as_slice(), dense.covariance.as_slice(), 1e-12);
    let identity = product(&precision, &r);
    let condition = trace / psi.iter().fold(f64::INFINITY, |m: f64, v| m.min(*v));
    for (got, want) in identity.as_slice().iter().zip(Matrix::identity(d).as_slice()) {
        assert!((got - want).abs() < 1e-13 * condition.max(1e5), "precision times covariance");
    }
}

/// A model of standardized columns, and one of columns standardized before they came.
#[track_caller]
pub(crate) fn check_same(
    one: &LinearGaussian,
    data: &Dataset,
    other: &LinearGaussian,
    by_hand: &Dataset,
    tolerance: f64,
) {
    let (one, other) = (&one.plug_in(), &other.plug_in());
    assert_close("axes", one.components().as_slice(), other.components().as_slice(), tolerance);
    assert_close("shares", &one.explained_variance_ratio(), &other.explained_variance_ratio(), tolerance);
    for how in [Coordinates::Posterior, Coordinates::Projection, Coordinates::Whitened] {
        let (a, b) = (one.transform(data, how).unwrap(), other.transform(by_hand, how).unwrap());
        assert_close("scores", a.as_slice(), b.as_slice(), tolerance);
    }
    let spe = |model: &LinearGaussian, data: &Dataset| -> Vec<f64> {
        model.outlyingness(data).unwrap().iter().map(|o| o.squared_prediction_error).collect()
    };
    assert_close("squared prediction error", &spe(one, data), &spe(other, by_hand), tolerance);
    let ln_scale: Vec<f64> = one.scale().expect("standardized").iter().map(|s| s.ln()).collect();
    let moved: Vec<f64> = other
        .log_density(by_hand)
        .unwrap()
        .iter()
        .enumerate()
        .map(|(i, l)| l - observed(data.row(i)).iter().map(|&j| ln_scale[j]).sum::<f64>())
        .collect();
    assert_close("log-density", &one.log_density(data).unwrap(), &moved, tolerance);
    for how in [Reconstruction::Orthogonal, Reconstruction::PosteriorMean] {
        let (a, b) = (one.reconstruct(data, how).unwrap(), other.reconstruct(by_hand, how).unwrap());
        let z = |i: usize, j: usize| (a[(i, j)] - data.observed_means()[j]) / ln_scale[j].exp();
        let a = Matrix::from_fn(a.n_rows(), a.n_columns(), z);
        assert_close("reconstruction", a.as_slice(), b.as_slice(), tolerance);
    }
}

fn two_components() -> Dataset {
    simulate::ppca(Shape { rows: 60, columns: 9, n_components: 2 }, 3).0
}

#[test]
fn variational_methods_answer_in_the_scale_of_the_fit() {
    for method in variational_cases() {
        for (data, standardize) in tables(&two_components(), method.gaps == Gaps::Exact) {
            let spec = Spec { standardize, ..(method.spec)(2) };
            check(&method.method.fit(&data, &spec).unwrap().model, &data, standardize);
        }
    }
}

#[test]
fn models_of_views_answer_in_the_scale_of_the_fit() {
    for name in ["bach-jordan", "shared-private", "mean-field"] {
        for (data, standardize) in tables(&two_components(), name != "bach-jordan") {
            let spec = Spec { standardize, ..Spec::of_views(1, vec![4, 5]) };
            let fit = Method::from_name(name).unwrap().fit(&data, &spec).unwrap();
            check(&fit.model, &data, standardize);
        }
    }
}

#[test]
fn every_model_of_a_mixture_answers_in_the_scale_of_the_fit() {
    let (table, _, labels) = simulate::mixture(Shape { rows: 120, columns: 6, n_components: 2 }, 2, 6.0, 1);
    for (data, standardize) in tables(&table, true) {
        for spec in [Spec::ppca(2), Spec::factor_analysis(2), Spec::ppca(5)] {
            let (spec, method) = (Spec { standardize, ..spec }, MixtureEm::of(2));
            let fit = method.fit(&data, &spec).unwrap();
            fit.model.models().iter().for_each(|model| check(model, &data, standardize));
            let learned = Learned::of_mixture(fit, &data, &spec, (&method).into());
            let mut bytes = Vec::new();
            model_file::write(&learned, &mut bytes).unwrap();
            assert_eq!(model_file::read(bytes.as_slice()).unwrap(), learned);
        }
        let classes: Vec<Option<usize>> = labels.iter().map(|&k| Some(k)).collect();
        let names = vec!["a".to_owned(), "b".to_owned()];
        let spec = Spec { standardize, ..Spec::ppca(2) };
        let fit = ClassConditional::default().fit(&data, &classes, &names, &spec).unwrap();
        fit.model.mixture().models().iter().for_each(|model| check(model, &data, standardize));
    }
}

#[test]
fn principal_component_scores_are_uncorrelated_whatever_the_units() {
    for (data, standardize) in tables(&two_components(), false) {
        let spec = Spec { standardize, ..Spec::ppca(3) };
        let model = Spectral::default().fit(&data, &spec).unwrap().model;
        let scores = model.transform(&data, Coordinates::Projection).unwrap();
        let c = dense::moments(&scores).covariance;
        let n = model.explained_variance();
        for k in 0..3 {
            assert_close("variance of a score", &[c[(k, k)]], &[n[k]], 1e-9);
            for l in 0..k {
                assert!(
                    c[(k, l)].abs() < 1e-10 * (c[(k, k)] * c[(l, l)]).sqrt(),
                    "scores {k} and {l} correlate"
                );
            }
        }
    }
}

/// Eigenpairs of a symmetric matrix by Jacobi's rotations, largest first.
fn jacobi(a: &Matrix) -> (Vec<f64>, Matrix) {
    let d = a.n_rows();
    let (mut a, mut v) = (a.clone(), Matrix::identity(d));
    for _ in 0..60 {
        for p in 0..d {
            for q in p + 1..d {
                if a[(p, q)] == 0.0 {
                    continue;
                }
                let theta = (a[(q, q)] - a[(p, p)]) / (2.0 * a[(p, q)]);
                let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let (c, s) = (1.0 / t.hypot(1.0), t / t.hypot(1.0));
                for k in 0..d {
                    let (x, y) = (a[(k, p)], a[(k, q)]);
                    (a[(k, p)], a[(k, q)]) = (c * x - s * y, s * x + c * y);
                }
                for k in 0..d {
                    let (x, y) = (a[(p, k)], a[(q, k)]);
                    (a[(p, k)], a[(q, k)]) = (c * x - s * y, s * x + c * y);
                    let (x, y) = (v[(k, p)], v[(k, q)]);
                    (v[(k, p)], v[(k, q)]) = (c * x - s * y, s * x + c * y);
                }
            }
        }
    }
    let mut order: Vec<usize> = (0..d).collect();
    order.sort_by(|&i, &j| a[(j, j)].total_cmp(&a[(i, i)]));
    let values = order.iter().map(|&k| a[(k, k)]).collect();
    (values, Matrix::from_fn(d, d, |j, k| v[(j, order[k])]))
}

/// Scores, loadings, shares and squared prediction errors of real tables beside Jacobi's eigenvectors.
#[test]
fn principal_components_of_real_tables_are_those_of_the_dense_eigenvectors() {
    let mut tables: Vec<(String, Dataset)> =
        ["iris", "wine", "breast_cancer"].map(|name| (name.to_owned(), scikit_learn::table(name))).to_vec();
    if let Some(path) = shared_data("decathlon/decathlon.csv") {
        let table = covary::io::csv::read(std::fs::File::open(path).unwrap()).unwrap();
        tables.push((
            "decathlon".to_owned(),
            table.dataset().of_columns(&(0..10).collect::<Vec<_>>()).unwrap(),
        ));
    }
    for (name, data) in tables {
        for standardize in [false, true] {
            let (d, q) = (data.n_columns(), 3);
            let sample = dense::moments(data.values());
            let scale: Vec<f64> =
                (0..d).map(|j| if standardize { sample.covariance[(j, j)].sqrt() } else { 1.0 }).collect();
            let r = Matrix::from_fn(d, d, |i, j| sample.covariance[(i, j)] / (scale[i] * scale[j]));
            let (values, vectors) = jacobi(&r);
            let total: f64 = values.iter().sum();
            let noise = values[q..].iter().sum::<f64>() / (d - q) as f64;
            let spec = Spec { standardize, ..Spec::ppca(q) };
            let model = Spectral::default().fit(&data, &spec).unwrap().model;
            let largest = |k: usize| {
                (0..d).fold(0.0_f64, |m, j| if vectors[(j, k)].abs() > m.abs() { vectors[(j, k)] } else { m })
            };
            let u = Matrix::from_fn(d, q, |j, k| vectors[(j, k)] * largest(k).signum());
            assert_close(&name, model.components().transpose().as_slice(), u.as_slice(), 1e-10);
            let shares: Vec<f64> = values[..q].iter().map(|v| v / total).collect();
            assert_close(&name, &model.explained_variance_ratio(), &shares, 1e-10);
            let z = |i: usize, j: usize| (data.row(i)[j] - sample.mean[j]) / scale[j];
            let scores = Matrix::from_fn(data.n_rows(), q, |i, k| (0..d).map(|j| z(i, j) * u[(j, k)]).sum());
            let got = model.transform(&data, Coordinates::Projection).unwrap();
            assert_close(&name, got.as_slice(), scores.as_slice(), 1e-10);
            for j in 0..d {
                for k in 0..q {
                    let want = u[(j, k)] * (values[k] - noise).sqrt();
                    let got = model.loadings()[(j, k)] / scale[j];
                    assert!((got - want).abs() < 1e-10 * values[0].sqrt(), "{name}: loading {got}, {want}");
                }
            }
            for (i, row) in model.outlyingness(&data).unwrap().iter().enumerate() {
                let fitted = |j: usize| (0..q).map(|k| scores[(i, k)] * u[(j, k)]).sum::<f64>();
                let spe: f64 = (0..d).map(|j| (z(i, j) - fitted(j)).powi(2)).sum();
                let room: f64 = (0..d).map(|j| z(i, j).powi(2)).sum();
                let got = row.squared_prediction_error;
                assert!((got - spe).abs() < 1e-10 * room, "{name}: SPE {got}, {spe}");
            }
        }
    }
}

/// Found by fuzzing: a scale by which loadings or noise leave the range of numbers made the axes panic.
#[test]
fn a_scale_by_which_a_model_overflows_is_refused() {
    let model = |w: f64, noise: f64| {
        LinearGaussian::new(Matrix::from_rows(&[[w], [1.0]]), vec![0.0; 2], Noise::Diagonal(vec![noise, 1.0]))
            .unwrap()
    };
    assert!(model(1e300, 1.0).with_scale(Some(vec![1e-20, 1.0])).is_err());
    assert!(model(1.0, 1.0).with_scale(Some(vec![1e-200, 1.0])).is_err());
    let largest = model(1e300, 1.0).with_scale(Some(vec![1.0, 1.0])).unwrap();
    assert!((largest.components()[(0, 0)] - 1.0).abs() < 1e-12);
}
