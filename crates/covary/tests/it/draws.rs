//! Draws of scores and rows: moments against the closed form, seeded, and what comes back.

use crate::common::assert_close;
use covary::data::{Shape, simulate};
use covary::family::{Components, Family, Request};
use covary::infer::Structured;
use covary::learned::Learned;
use covary::{Coordinates, Dataset, Density, Error, Estimator, LinearGaussian, Matrix, Spec};

const DRAWS: usize = 40_000;

fn learned(family: Family, standardize: bool, rotation: Option<&str>) -> (Learned, Dataset) {
    let (data, _) = simulate::factor_analysis(Shape { rows: 150, columns: 6, n_components: 2 }, 5);
    let mut values = data.values().clone();
    values.scale_columns(&[1.0, 10.0, 0.1, 3.0, 1.0, 50.0]);
    let data = simulate::hide(&Dataset::new(values).unwrap(), 0.1, 1);
    let request = Request {
        n_components: Some(Components::Number(2)),
        standardize: Some(standardize),
        rotation: rotation.map(|name| (name.to_owned(), covary::model::Rotation::from_name(name).unwrap())),
        ..Request::new(family)
    };
    (request.learn(&data).unwrap(), data)
}

/// Mean and covariance of rows.
fn moments(rows: &Matrix) -> (Vec<f64>, Matrix) {
    let m = covary::CentralMoments::of(&Dataset::new(rows.clone()).unwrap()).unwrap();
    (m.mean().to_vec(), m.covariance())
}

/// Means within five standard errors, covariances within 4 %.
fn check_moments(rows: &Matrix, mean: &[f64], covariance: &Matrix) {
    let (got, s) = moments(rows);
    for j in 0..mean.len() {
        let error = (covariance[(j, j)] / rows.n_rows() as f64).sqrt();
        assert!((got[j] - mean[j]).abs() < 5.0 * error, "mean {j}: {} and {}", got[j], mean[j]);
        for k in 0..=j {
            let scale = (covariance[(j, j)] * covariance[(k, k)]).sqrt();
            assert!((s[(j, k)] - covariance[(j, k)]).abs() < 0.04 * scale, "covariance {j}, {k}");
        }
    }
}

/// V = (I + WᵀΨ⁻¹W)⁻¹ of the observed cells, and V WᵀΨ⁻¹(t − μ), with dense matrices of two components.
fn posterior(model: &LinearGaussian, row: &[f64]) -> (Vec<f64>, Matrix) {
    let (w, psi) = (model.loadings(), model.noise_variances());
    let mut g = Matrix::identity(2);
    let mut b = [0.0; 2];
    for j in (0..row.len()).filter(|&j| !row[j].is_nan()) {
        for a in 0..2 {
            b[a] += w[(j, a)] * (row[j] - model.mean()[j]) / psi[j];
            for c in 0..2 {
                g[(a, c)] += w[(j, a)] * w[(j, c)] / psi[j];
            }
        }
    }
    let det = g[(0, 0)] * g[(1, 1)] - g[(0, 1)] * g[(1, 0)];
    let v = Matrix::from_rows(&[[g[(1, 1)] / det, -g[(0, 1)] / det], [-g[(1, 0)] / det, g[(0, 0)] / det]]);
    (vec![v[(0, 0)] * b[0] + v[(0, 1)] * b[1], v[(1, 0)] * b[0] + v[(1, 1)] * b[1]], v)
}

#[test]
fn drawn_scores_have_the_moments_of_the_posterior() {
    for (family, standardize, rotation) in [
        (Family::Ppca, true, None),
        (Family::Ppca, false, None),
        (Family::Pca, true, None),
        (Family::Fa, true, Some("varimax")),
        (Family::Fa, false, Some("oblimin")),
    ] {
        let (learned, data) = learned(family, standardize, rotation);
        let fit = learned.linear().unwrap();
        let complete = (0..data.n_rows()).find(|&i| data.row(i).iter().all(|v| !v.is_nan())).unwrap();
        let gappy = (0..data.n_rows()).find(|&i| data.row(i).iter().any(|v| v.is_nan())).unwrap();
        for row in [complete, gappy] {
            // The same row many times, each with a stream of its own.
            let copies = data.of_rows(&vec![row; DRAWS]).unwrap();
            let drawn = learned.draw_scores(&copies, 3).unwrap();
            assert_eq!(drawn.names, ["component_1", "component_2"]);
            let (mut mean, mut v) = posterior(&fit.model, data.row(row));
            if let Some(r) = &fit.rotation {
                mean = r.rotated.scores(&Matrix::from_rows(&[mean])).unwrap().row(0).to_vec();
                v = r.rotated.score_covariance(&v);
            }
            check_moments(&drawn.values, &mean, &v);
            assert_eq!(drawn, learned.draw_scores(&copies, 3).unwrap());
            assert_ne!(drawn.values, learned.draw_scores(&copies, 4).unwrap().values);
        }
    }
}

#[test]
fn drawn_rows_have_the_noise_about_the_rows_of_their_scores() {
    for (standardize, rotation) in [(true, None), (false, Some("oblimin"))] {
        let (learned, _) = learned(Family::Fa, standardize, rotation);
        let fit = learned.linear().unwrap();
        let scores = Matrix::from_fn(DRAWS, 2, |_, k| if k == 0 { 0.7 } else { -1.2 });
        let drawn = learned.rows_of(&scores, None, Some(1)).unwrap();
        let (l, psi) = (fit.loadings(), fit.model.noise_variances());
        let mean: Vec<f64> =
            (0..6).map(|j| 0.7 * l[(j, 0)] - 1.2 * l[(j, 1)] + fit.model.mean()[j]).collect();
        let still = learned.rows_of(&Matrix::from_rows(&[[0.7, -1.2]]), None, None).unwrap();
        assert_close("W x + μ", still.row(0), &mean, 1e-10);
        check_moments(&drawn, &mean, &Matrix::from_fn(6, 6, |i, j| if i == j { psi[i] } else { 0.0 }));
        assert_eq!(drawn, learned.rows_of(&scores, None, Some(1)).unwrap());
    }
    // x ~ N(0, I), then t | x: rows of the model. Equal seeds do not tie the noise to the scores.
    let (learned, _) = learned(Family::Ppca, true, None);
    let model = &learned.linear().unwrap().model;
    let empty = Dataset::new(Matrix::from_fn(DRAWS, 6, |_, _| f64::NAN)).unwrap();
    let scores = learned.draw_scores(&empty, 9).unwrap().values;
    check_moments(&scores, &[0.0, 0.0], &Matrix::identity(2));
    let rows = learned.rows_of(&scores, None, Some(9)).unwrap();
    check_moments(&rows, model.mean(), &model.covariance());
}

/// With heavy tails the scale of a row is drawn, too: x | t is Student's t.
#[test]
fn draws_of_heavy_tails_have_their_own_scale() {
    let w = Matrix::from_rows(&[[1.0], [0.5], [2.0]]);
    let gaussian = LinearGaussian::new(w, vec![0.0; 3], covary::Noise::Isotropic(0.5)).unwrap();
    let model = gaussian.clone().with_tail_degrees_of_freedom(6.0).unwrap();
    let row = [2.0, -1.0, f64::NAN];
    let copies = Dataset::new(Matrix::from_rows(&vec![row; DRAWS])).unwrap();
    let found = model.posterior(&copies).unwrap();
    check_moments(&model.draw_scores(&copies, 1).unwrap(), found.mean.row(0), found.covariance(0));
    // Var(t | x) = Ψ (ν + xᵀx)/(ν + q − 2)
    let scores = Matrix::from_fn(DRAWS, 1, |_, _| 1.5);
    let spread = 0.5 * (6.0 + 2.25) / 5.0;
    let noise = Matrix::from_fn(3, 3, |i, j| if i == j { spread } else { 0.0 });
    check_moments(&model.draw_rows(&scores, 1).unwrap(), &[1.5, 0.75, 3.0], &noise);
}

#[test]
fn scores_come_back_from_the_rows_they_stand_for() {
    for standardize in [true, false] {
        for family in [Family::Ppca, Family::Pca, Family::Fa] {
            let (learned, data) = learned(family, standardize, None);
            for how in [Coordinates::Projection, Coordinates::Whitened, Coordinates::Bartlett] {
                let z = learned.scores(&data, Some(how)).unwrap().values;
                let rows = Dataset::new(learned.rows_of(&z, Some(how), None).unwrap()).unwrap();
                let again = learned.scores(&rows, Some(how)).unwrap().values;
                assert_close("z", again.as_slice(), z.as_slice(), 1e-8);
            }
            // The posterior mean is shrunk, so that it does not.
            let x = learned.scores(&data, Some(Coordinates::Posterior)).unwrap().values;
            let rows = learned.rows_of(&x, Some(Coordinates::Posterior), None).unwrap();
            let how = covary::Reconstruction::PosteriorMean;
            let seen = learned.linear().unwrap().model.reconstruct(&data, how).unwrap();
            assert_close("W x + μ", rows.as_slice(), seen.as_slice(), 1e-9);
        }
    }
    let (learned, _) = learned(Family::Pca, true, None);
    let z = Matrix::zeros(1, 2);
    assert!(matches!(
        learned.rows_of(&z, Some(Coordinates::Projection), Some(1)),
        Err(Error::Unsupported { .. })
    ));
    assert!(matches!(learned.rows_of(&Matrix::zeros(1, 3), None, None), Err(Error::WrongLength { .. })));
}

/// The prior mean of μ pulls it as far as β says: with q = 0, `μ̂ = (β m₀ + Σ t)/(β + n)`.
#[test]
fn the_prior_mean_of_structured_bayes_can_be_set() {
    let (data, _) = simulate::ppca(Shape { rows: 30, columns: 3, n_components: 1 }, 2);
    let prior = vec![5.0, -2.0, 0.5];
    for standardize in [true, false] {
        let spec = Spec { standardize, ..Spec::ppca(0) };
        let method =
            Structured { mean_precision: 10.0, prior_mean: Some(prior.clone()), ..Structured::default() };
        let fit = method.fit(&data, &spec).unwrap();
        let want: Vec<f64> =
            (0..3).map(|j| (10.0 * prior[j] + 30.0 * data.observed_means()[j]) / 40.0).collect();
        assert_close("mean", fit.model.mean(), &want, 1e-9);
    }
    let (wide, _) = simulate::ppca(Shape { rows: 60, columns: 8, n_components: 2 }, 1);
    let spec = Spec::ppca(2);
    let offset =
        Structured { mean_precision: 20.0, prior_offset: Some(vec![3.0, 0.0]), ..Structured::default() };
    let moved = offset.fit(&wide, &spec).unwrap();
    let plain = Structured { mean_precision: 20.0, ..Structured::default() }.fit(&wide, &spec).unwrap();
    assert_eq!((moved.model.n_components(), plain.model.n_components()), (2, 2));
    assert_ne!(moved.model.mean(), plain.model.mean());
    assert!(moved.report.trace.windows(2).skip(1).all(|w| w[1] >= w[0] - 1e-7), "the bound rises");
    let short = Structured { prior_mean: Some(vec![1.0]), ..Structured::default() };
    assert_eq!(
        short.fit(&data, &spec).unwrap_err(),
        Error::WrongLength { what: "prior_mean", expected: 3, got: 1 }
    );
    let mut named = covary::Method::from_name("structured").unwrap();
    named.set("prior_mean", "[5, -2, 0.5]").unwrap();
    named.set("prior_offset", "[1.0, 0.0]").unwrap();
    assert!(named.fit(&data, &spec).is_ok());
}

/// Exact densities are those of the library's Student form, and other models have none.
#[test]
fn exact_densities_are_those_of_structured_bayes() {
    let (learned, data) = learned(Family::Bpca, true, None);
    let exact = learned.exact_log_density(&data, 500, 1).unwrap();
    let model = &learned.linear().unwrap().model;
    assert_eq!(exact, model.predictive_log_density(&data, 500, 1).unwrap());
    let by_draws = model.log_density(&data).unwrap();
    let apart = exact.iter().zip(&by_draws).map(|(a, b)| (a.value - b).abs()).fold(0.0, f64::max);
    assert!(apart < 1.0 && apart > 0.0, "{apart}");
    let (ppca, data) = self::learned(Family::Ppca, true, None);
    assert!(matches!(ppca.exact_log_density(&data, 500, 1), Err(Error::Unsupported { .. })));
}
