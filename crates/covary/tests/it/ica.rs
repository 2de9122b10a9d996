//! Independent components: golden cases, scikit-learn's fixed points, identities, real sounds, and what is refused.

use crate::common::{assert_close, dataset, flat, golden, matrix};
use covary::family::{Family, Request};
use covary::ica::{
    Algorithm, Contrast, FastIca, Kind, MaximumLikelihood, Method, NoisyIca, NoisyMixing, NoisyStart,
    Separation, Sources, Unmixing, Warning, amari_index,
};
use covary::infer::{Acceleration, Step, Termination};
use covary::model::Fill;
use covary::{Dataset, Error, Matrix};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::ControlFlow;

/// Sources as the functions of the row that `golden/ica/make.py` has.
fn functions(n: usize) -> Matrix {
    Matrix::from_fn(n, 4, |i, k| {
        let x = i as f64;
        match k {
            0 => (i % 19) as f64 / 19.0,
            1 => (0.37 * x).sin(),
            2 => (1.1 * x).cos().powi(9),
            _ => (0.05 * x * x).sin().powi(3),
        }
    })
}

/// Independent sources: uniform, Laplace, two-humped and a mixture of two widths.
fn drawn(n: usize, seed: u64) -> Matrix {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let laplace = |u: f64| -(1.0 - 2.0 * (u - 0.5).abs()).ln() * (u - 0.5).signum();
    let mut normal = {
        let mut rng = ChaCha8Rng::seed_from_u64(seed + 1);
        move || (0..12).map(|_| rng.random::<f64>()).sum::<f64>() - 6.0
    };
    Matrix::from_fn(n, 4, |_, k| {
        let u: f64 = rng.random();
        match k {
            0 => u - 0.5,
            1 => laplace(u),
            2 => (u - 0.5).signum() + 0.3 * normal(),
            _ => (if u < 0.1 { 4.0 } else { 0.5 }) * normal(),
        }
    })
}

fn mixing() -> Matrix {
    Matrix::from_rows(&[
        [1.0, 0.6, -0.3, 0.2],
        [0.4, 1.0, 0.5, -0.7],
        [-0.2, 0.3, 1.0, 0.4],
        [0.1, -0.5, 0.2, 1.0],
    ])
}

fn mixed(sources: &Matrix, mixing: &Matrix) -> Dataset {
    Dataset::new(sources.dot_t(mixing)).unwrap()
}

/// Largest difference between rows of `got` and the rows of `want` they are, up to order and sign.
fn row_distance(got: &Matrix, want: &Matrix) -> f64 {
    let apart = |a: &[f64], b: &[f64], sign: f64| {
        a.iter().zip(b).map(|(a, b)| (a - sign * b).abs()).fold(0.0, f64::max)
    };
    let nearest =
        |w: &[f64]| got.rows().map(|g| apart(g, w, 1.0).min(apart(g, w, -1.0))).fold(f64::INFINITY, f64::min);
    want.rows().map(nearest).fold(0.0, f64::max)
}

#[test]
fn maximum_likelihood_meets_the_golden_case() {
    let case = golden("part2", "ica_noise_free");
    let (data, tolerance) = (dataset(&case["input"]["T"]), case["tolerance"]["values_rel"].as_f64().unwrap());
    let fit = |sources| MaximumLikelihood { sources, ..MaximumLikelihood::default() }.fit(&data).unwrap();
    for (name, kind) in [("ml_logistic", Kind::Logistic), ("ml_super", Kind::Super)] {
        let want = &case["expected"][name];
        let found = fit(Sources::All(kind));
        assert_eq!(found.termination, Termination::Converged);
        let likelihood = found.likelihood.as_ref().unwrap();
        assert!(likelihood.trace.windows(2).all(|l| l[1] >= l[0] - 1e-9));
        assert_close(name, &[likelihood.log_likelihood()], &flat(&want["loglik_whitened"]), tolerance);
        let mut scales = likelihood.scales.clone();
        scales.sort_by(f64::total_cmp);
        assert_close(name, &scales, &flat(&want["source_rms_sorted"]), tolerance);
        // B = diag(scales) R, and det R by the first row's cofactors.
        let r = found.model.rotation();
        let minor = |a: usize, b: usize| r[(1, a)] * r[(2, b)] - r[(1, b)] * r[(2, a)];
        let det = r[(0, 0)] * minor(1, 2) - r[(0, 1)] * minor(0, 2) + r[(0, 2)] * minor(0, 1);
        let got = det.abs() * scales.iter().product::<f64>();
        assert_close(name, &[got], &flat(&want["abs_det_B"]), tolerance);
    }
    let found = fit(Sources::Extended);
    let likelihood = found.likelihood.unwrap();
    let want = &case["expected"]["ml_extended"];
    assert_close("extended", &[likelihood.log_likelihood()], &flat(&want["loglik_whitened"]), tolerance);
    let sub = likelihood.kinds.iter().filter(|k| **k == Kind::Sub).count();
    assert_eq!(sub, 2, "{:?}", likelihood.kinds);
}

#[test]
fn fixed_points_are_those_of_scikit_learn() {
    let case = golden("ica", "fast_ica");
    let data = mixed(&functions(400), &matrix(&case["mixing"]));
    for want in case["fits"].as_array().unwrap() {
        let fit = FastIca {
            n_components: Some(4),
            algorithm: if want["algorithm"] == "parallel" {
                Algorithm::Parallel
            } else {
                Algorithm::Deflation
            },
            contrast: match want["contrast"].as_str().unwrap() {
                "logcosh" => Contrast::LogCosh { a: 1.0 },
                "exp" => Contrast::Exp,
                _ => Contrast::Cube,
            },
            tolerance: 1e-22,
            max_iterations: 10_000,
            start: Some(Matrix::identity(4)),
            ..FastIca::default()
        };
        let found = fit.fit(&data).unwrap();
        assert_eq!(found.termination, Termination::Converged);
        let distance = row_distance(found.model.unmixing(), &matrix(&want["unmixing"]));
        assert!(distance < 1e-8, "{} {}: {distance:.1e}", want["algorithm"], want["contrast"]);
    }
    let start = Some(Matrix::identity(3));
    let fit = FastIca { n_components: Some(3), tolerance: 1e-22, start, ..FastIca::default() };
    let found = FastIca { max_iterations: 10_000, ..fit }.fit(&data).unwrap();
    let distance = row_distance(found.model.unmixing(), &matrix(&case["three_of_five"]));
    assert!(distance < 1e-8, "three of five: {distance:.1e}");
}

#[test]
fn mixed_sources_are_separated() {
    let (sources, mixing) = (drawn(2000, 3), mixing());
    let data = mixed(&sources, &mixing);
    let check = |what: &str, found: &Separation| {
        let index = amari_index(&found.model.unmixing().dot(&mixing));
        assert!(index < 0.05, "{what}: {index}");
        assert!(found.warnings.is_empty(), "{what}: {:?}", found.warnings);
    };
    for algorithm in [Algorithm::Parallel, Algorithm::Deflation] {
        for contrast in [Contrast::LogCosh { a: 1.0 }, Contrast::Exp, Contrast::Cube] {
            let found = FastIca { algorithm, contrast, ..FastIca::default() }.fit(&data).unwrap();
            check(&format!("{algorithm:?} {contrast:?}"), &found);
        }
    }
    let found = MaximumLikelihood::default().fit(&data).unwrap();
    check("extended", &found);
    let mut kurtosis = found.kurtosis.clone();
    kurtosis.sort_by(f64::total_cmp);
    assert!(kurtosis[1] < -1.0 && kurtosis[2] > 2.0, "{kurtosis:?}");
    // mean ψ(yᵢ) yⱼ = δᵢⱼ
    let likelihood = found.likelihood.unwrap();
    let mut y = found.model.transform(&data).unwrap();
    y.scale_columns(&likelihood.scales);
    let sign = |i: usize| if likelihood.kinds[i] == Kind::Super { 1.0 } else { -1.0 };
    let psi = Matrix::from_fn(2000, 4, |n, i| y[(n, i)] + sign(i) * y[(n, i)].tanh());
    let mut means = psi.t_dot(&y);
    means.as_mut_slice().iter_mut().for_each(|v| *v /= 2000.0);
    assert_close("mean ψ(y) yᵀ", means.as_slice(), Matrix::identity(4).as_slice(), 1e-7);
}

#[test]
fn sources_have_unit_variance_an_order_and_signs_and_lead_back() {
    let data = mixed(&drawn(500, 5), &mixing());
    for found in [FastIca::default().fit(&data).unwrap(), MaximumLikelihood::default().fit(&data).unwrap()] {
        let model = &found.model;
        let s = model.transform(&data).unwrap();
        let powers: Vec<f64> =
            (0..4).map(|i| s.column(i).iter().map(|v| v * v).sum::<f64>() / 500.0).collect();
        assert_close("variance", &powers, &[1.0; 4], 1e-10);
        let back = model.decode(&s).unwrap();
        assert_close("rows", back.as_slice(), data.values().as_slice(), 1e-10);
        let columns: Vec<Vec<f64>> = (0..4).map(|i| model.mixing().column(i)).collect();
        let length = |c: &Vec<f64>| c.iter().map(|v| v * v).sum::<f64>();
        assert!(columns.windows(2).all(|c| length(&c[0]) >= length(&c[1])));
        let largest = |c: &Vec<f64>| c.iter().fold(0.0_f64, |m, v| if v.abs() > m.abs() { *v } else { m });
        assert!(columns.iter().all(|c| largest(c) > 0.0));
        let u = model.rotation().dot(model.whitening());
        assert_close("U = R Kᵀ", u.as_slice(), model.unmixing().as_slice(), 1e-12);
        let parts = [model.whitening().clone(), model.rotation().clone(), model.mixing().clone()];
        let [whitening, rotation, mixing] = parts.clone();
        assert_eq!(&Unmixing::new(model.mean().to_vec(), whitening, rotation, mixing).unwrap(), model);
        let [whitening, rotation, _] = parts;
        assert!(Unmixing::new(model.mean().to_vec(), whitening, rotation, Matrix::zeros(4, 3)).is_err());
    }
}

#[test]
fn an_invertible_map_of_the_columns_changes_no_source() {
    let sources = drawn(1000, 7);
    let map = Matrix::from_rows(&[
        [3.0, 0.1, 0.0, 0.4],
        [0.0, 0.2, 0.5, 0.0],
        [1.0, 0.0, 2.0, 0.3],
        [0.0, 0.7, 0.0, 1.0],
    ]);
    let plain = mixed(&sources, &mixing());
    let mapped = Dataset::new(plain.values().dot_t(&map)).unwrap();
    let found = |data: &Dataset| {
        let fit = MaximumLikelihood::default().fit(data).unwrap();
        fit.model.transform(data).unwrap().transpose()
    };
    assert!(row_distance(&found(&mapped), &found(&plain)) < 1e-5);
}

fn in_units(data: &Dataset, units: &[f64]) -> Dataset {
    let mut values = data.values().clone();
    values.scale_columns(units);
    Dataset::new(values).unwrap()
}

#[test]
fn units_of_the_table_change_no_source() {
    let exact = mixed(&drawn(500, 7), &mixing());
    let (noisy, _) = behind_noise();
    let methods = [
        (Method::from_name("fastica").unwrap(), &exact),
        (Method::from_name("maximum-likelihood").unwrap(), &exact),
        (Method::Noisy(NoisyIca::new(2)), &noisy),
        (Method::Noisy(NoisyIca { tied_noise: true, ..NoisyIca::new(2) }), &noisy),
    ];
    for (method, data) in methods {
        let sources = |data: &Dataset| {
            let found = method.fit_observed(data, &mut ()).unwrap();
            (found.model.transform(data).unwrap(), found)
        };
        let (want, plain) = sources(data);
        for c in [1e-100, 1e-20, 1e20, 1e100] {
            let (got, found) = sources(&in_units(data, &vec![c; data.n_columns()]));
            assert_close(&format!("{} × {c:e}", method.name()), got.as_slice(), want.as_slice(), 1e-8);
            assert_eq!(found.warnings, plain.warnings);
            if let (Method::Noisy(_), Some(at), Some(before)) =
                (&method, found.objective(), plain.objective())
            {
                let moved = -(data.n_observed() as f64) * f64::ln(c);
                assert!((at.value - before.value - moved).abs() < 1e-9 * moved.abs());
            }
        }
        for c in [1e-145, 1e145] {
            let far = in_units(data, &vec![c; data.n_columns()]);
            assert!(matches!(method.fit_observed(&far, &mut ()), Err(Error::OutOfScale { .. })));
        }
    }
}

#[test]
fn units_of_columns_drop_no_direction_and_dependent_columns_are_said() {
    let data = mixed(&drawn(1000, 7), &mixing());
    let far = in_units(&data, &[1.0, 1e-6, 1e6, 1.0]);
    // Whitened along other axes: as near as the stopping rules.
    let fast = FastIca { tolerance: 1e-12, ..FastIca::default() };
    for method in [Method::Fast(fast), Method::Likelihood(MaximumLikelihood::default())] {
        let sources = |data: &Dataset| {
            let found = method.fit_observed(data, &mut ()).unwrap();
            assert_eq!(found.warnings, []);
            found.model.transform(data).unwrap().transpose()
        };
        assert!(row_distance(&sources(&far), &sources(&data)) < 1e-5);
        let twice = Matrix::from_fn(1000, 5, |i, j| data.values()[(i, j % 4)]);
        let twice = method.fit_observed(&Dataset::new(twice).unwrap(), &mut ()).unwrap();
        assert_eq!(twice.warnings, [Warning::Dependent { left_out: 1, sources: 4 }]);
        assert!(twice.warnings[0].to_string().contains("1 direction"));
    }
}

#[test]
fn a_column_of_rounding_is_no_direction() {
    let data = mixed(&drawn(1000, 7), &mixing());
    let ulp = |i: usize| 5.0 * (1.0 + f64::EPSILON * (i % 3) as f64);
    let values = Matrix::from_fn(1000, 5, |i, j| if j == 4 { ulp(i) } else { data.values()[(i, j)] });
    let found = FastIca::default().fit(&Dataset::new(values).unwrap()).unwrap();
    assert_eq!(found.model.n_components(), 4);
}

#[test]
fn the_number_of_noisy_sources_is_at_most_the_rank() {
    let three = mixed(&drawn(3, 7), &mixing());
    let data = Dataset::new(Matrix::from_fn(60, 4, |i, j| three.values()[(i / 20, j)])).unwrap();
    let request = Request { inference: Some("noisy".to_owned()), ..Request::new(Family::Ica) };
    let learned = request.learn(&data).unwrap();
    assert!((1..=2).contains(&learned.n_components()));
}

#[test]
fn the_same_bits_on_one_thread_and_two() {
    let data = mixed(&drawn(9000, 9), &mixing());
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let fast = FastIca::default().fit(&data).unwrap();
            let likely = MaximumLikelihood::default().fit(&data).unwrap();
            let sources = fast.model.transform(&data).unwrap();
            let noisy = NoisyIca { max_iterations: 15, ..NoisyIca::new(2) }.fit(&data).unwrap().model;
            let behind = noisy.transform(&data).unwrap();
            let mixing = noisy.mixing().clone();
            [fast.model.unmixing().clone(), likely.model.unmixing().clone(), sources, mixing, behind]
        })
    };
    for (a, b) in on(1).iter().zip(&on(2)) {
        assert!(a.as_slice().iter().zip(b.as_slice()).all(|(a, b)| a.to_bits() == b.to_bits()));
    }
}

#[cfg(feature = "npy")]
#[test]
#[allow(clippy::print_stderr, reason = "the figure is asked for")]
fn three_real_sounds_are_separated_as_well_as_by_scikit_learn() {
    use covary::io::{Format, Input, ReadOptions, read};
    let Some(path) = crate::common::shared_data("cocktail_party/cocktail_sources.npz") else { return };
    let format = Format::of_file(&path.to_string_lossy()).unwrap();
    let table =
        read(Input::<&[u8]>::File(std::fs::File::open(&path).unwrap()), format, &ReadOptions::default())
            .unwrap();
    let case = &golden("ica", "fast_ica")["cocktail"];
    let mixing = matrix(&case["mixing"]);
    let data = mixed(table.dataset().values(), &mixing);
    let index = |found: &Separation| amari_index(&found.model.unmixing().dot(&mixing));
    let fast = index(&FastIca { tolerance: 1e-12, ..FastIca::default() }.fit(&data).unwrap());
    let likely = index(&MaximumLikelihood::default().fit(&data).unwrap());
    let theirs = case["amari_index"].as_f64().unwrap();
    eprintln!("Amari index: FastICA {fast:.6}, extended infomax {likely:.6}, scikit-learn {theirs:.6}");
    assert!(fast <= theirs + 1e-6 && likely < 0.05);
}

#[test]
fn gaussian_sources_are_named() {
    let (data, _) = covary::data::simulate::ppca(
        covary::data::Shape { rows: 20_000, columns: 3, n_components: 2 },
        /* seed */ 1,
    );
    for warnings in [
        FastIca { max_iterations: 20, ..FastIca::default() }.fit(&data).unwrap().warnings,
        MaximumLikelihood { max_iterations: 20, ..MaximumLikelihood::default() }.fit(&data).unwrap().warnings,
        NoisyIca { max_iterations: 20, ..NoisyIca::new(2) }.fit(&data).unwrap().warnings,
    ] {
        let said = warnings.iter().find(|w| matches!(w, Warning::Gaussian { .. })).expect("a warning");
        assert!(said.to_string().contains("cannot be told apart"), "{said}");
    }
}

#[test]
fn a_limit_that_comes_too_soon_is_a_warning() {
    let data = mixed(&drawn(500, 5), &mixing());
    let found = FastIca { max_iterations: 1, ..FastIca::default() }.fit(&data).unwrap();
    assert_eq!((found.termination, found.n_iterations), (Termination::IterationLimit, 1));
    assert!(matches!(found.warnings[..], [Warning::NotConverged { iterations: 1, .. }]));
    let mut stop = |_: &Step| ControlFlow::Break(());
    let found = FastIca::default().fit_observed(&data, &mut stop).unwrap();
    assert_eq!(found.termination, Termination::Interrupted);
    let deflation = FastIca { algorithm: Algorithm::Deflation, ..FastIca::default() };
    assert_eq!(deflation.fit_observed(&data, &mut stop).unwrap_err(), Error::Interrupted);
}

#[test]
fn what_cannot_be_separated_is_refused_in_words() {
    let values = mixed(&drawn(100, 5), &mixing()).into_values();
    let with = |change: &dyn Fn(&mut Matrix)| {
        let mut changed = values.clone();
        change(&mut changed);
        Dataset::new(changed).unwrap()
    };
    let fit = |data: &Dataset, q| FastIca { n_components: q, ..FastIca::default() }.fit(data);
    let twice = with(&|t| (0..100).for_each(|i| t[(i, 3)] = t[(i, 1)] - t[(i, 0)]));
    assert_eq!(fit(&twice, Some(4)).unwrap_err(), Error::RankBelow { asked: 4, rank: 3 });
    assert_eq!(fit(&twice, None).unwrap().model.n_components(), 3);
    let gap = with(&|t| t[(3, 2)] = f64::NAN);
    let refused = fit(&gap, None).unwrap_err();
    assert_eq!(refused, Error::GapsInSources { method: "FastICA", gaps: 1 });
    assert_eq!(refused.remedies(), [covary::Remedy::Method("noisy"), covary::Remedy::Impute]);
    assert!(refused.to_string().contains("impute the table first"));
    let constant = with(&|t| t.as_mut_slice().fill(2.0));
    assert_eq!(fit(&constant, None).unwrap_err(), Error::AllConstant { columns: 4 });
    assert!(matches!(fit(&with(&|_| ()), Some(5)), Err(Error::TooManyComponents { .. })));
    assert!(matches!(fit(&with(&|_| ()), Some(0)), Err(Error::OutOfRange { .. })));
    let one_row = Dataset::new(Matrix::from_rows(&[[1.0, 2.0]])).unwrap();
    assert_eq!(fit(&one_row, None).unwrap_err(), Error::TooFewRows { rows: 1 });
    let bad = [
        FastIca { contrast: Contrast::LogCosh { a: 3.0 }, ..FastIca::default() },
        FastIca { tolerance: f64::NAN, ..FastIca::default() },
        FastIca { start: Some(Matrix::from_fn(4, 4, |_, _| f64::INFINITY)), ..FastIca::default() },
    ];
    for request in bad {
        assert!(matches!(request.fit(&with(&|_| ())), Err(Error::OutOfRange { .. })));
    }
    let start = Some(Matrix::identity(3));
    let short = FastIca { start, ..FastIca::default() }.fit(&with(&|_| ()));
    assert!(matches!(short, Err(Error::WrongLength { expected: 4, got: 3, .. })));
    let found = fit(&with(&|_| ()), None).unwrap().model;
    assert!(matches!(found.transform(&one_row), Err(Error::ColumnCount { .. })));
    assert!(matches!(found.transform(&gap), Err(Error::GapsInSources { .. })));
    assert!(matches!(found.decode(&Matrix::zeros(2, 3)), Err(Error::WrongLength { .. })));
}

#[test]
fn noisy_sources_meet_the_golden_cases() {
    for name in ["ica_noisy_laplace_free", "ica_noisy_laplace_tied"] {
        let case = golden("part2", name);
        let (input, want) = (&case["input"], &case["expected"]);
        let data = dataset(&input["T"]);
        let psi = vec![input["psi0"].as_f64().unwrap(); 5];
        let start = NoisyMixing::new(matrix(&input["W0"]), data.observed_means().to_vec(), psi).unwrap();
        let fit = NoisyIca {
            tied_noise: input["tied_noise"].as_bool().unwrap(),
            max_iterations: 20,
            tolerance: 0.0,
            noise_floor: 1e-8,
            acceleration: Acceleration::Never,
            start: NoisyStart::Given(Box::new(start)),
            ..NoisyIca::new(2)
        };
        let found = fit.fit(&data).unwrap();
        let tolerance = case["tolerance"]["values_rel"].as_f64().unwrap();
        assert_close(
            "trace",
            &found.trace,
            &flat(&want["bound_trace"]),
            case["tolerance"]["trace_rel"].as_f64().unwrap(),
        );
        let model = found.model;
        assert_close("ψ", model.noise_variances(), &flat(&want["psi"]), tolerance);
        assert_close("μ", model.mean(), &flat(&want["mu"]), tolerance);
        let wwt = model.mixing().dot_t(model.mixing());
        assert_close("WWᵀ", wwt.as_slice(), &flat(&want["WWt"]), tolerance);
    }
}

/// Two heavy-tailed sources in four columns with noise, and how they were mixed.
fn behind_noise() -> (Dataset, Matrix) {
    let sources = drawn(2000, 3);
    let heavy = Matrix::from_fn(2000, 2, |i, k| sources[(i, 2 * k + 1)]);
    let mixing = Matrix::from_rows(&[[2.0, 0.6], [0.4, 1.0], [-0.2, 0.9], [1.0, -0.5]]);
    let noise: Vec<Matrix> = (0..4).map(|j| drawn(2000, 20 + j)).collect();
    let rows = heavy.dot_t(&mixing);
    let noisy = Matrix::from_fn(2000, 4, |i, j| rows[(i, j)] + noise[j][(i, 0)]);
    (Dataset::new(noisy).unwrap(), mixing)
}

#[test]
fn noisy_sources_are_separated_with_gaps() {
    let (whole, mixing) = behind_noise();
    let data = covary::data::simulate::hide(&whole, 0.1, 5);
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| NoisyIca { tied_noise: true, ..NoisyIca::new(2) }.fit(&data).unwrap())
    };
    let found = on(1);
    assert_eq!(found, on(2));
    assert_eq!(found.termination, Termination::Converged);
    assert!(found.trace.windows(2).all(|l| l[1] >= l[0] - 1e-9 * l[0].abs()));
    // Each column of the mixing lies along a true one.
    let cosine = |a: &[f64], b: &[f64]| {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        dot(a, b).abs() / (dot(a, a) * dot(b, b)).sqrt()
    };
    for k in 0..2 {
        let best =
            (0..2).map(|i| cosine(&found.model.mixing().column(i), &mixing.column(k))).fold(0.0, f64::max);
        assert!(best > 0.98, "{best}");
    }
    assert!(matches!(NoisyIca::new(0).fit(&data), Err(Error::OutOfRange { .. })));
    let constant = Dataset::new(Matrix::from_fn(20, 2, |i, j| (i * j) as f64)).unwrap();
    assert!(matches!(NoisyIca::new(1).fit(&constant), Err(Error::ConstantColumn { .. })));
    let start = NoisyMixing::new(Matrix::zeros(3, 2), vec![0.0; 3], vec![1.0; 3]).unwrap();
    let start = NoisyStart::Given(Box::new(start));
    assert!(matches!(NoisyIca { start, ..NoisyIca::new(2) }.fit(&data), Err(Error::WrongLength { .. })));
}

#[test]
#[allow(clippy::print_stderr, reason = "the figures are asked for")]
fn extrapolation_saves_steps_and_the_bound_never_falls() {
    let (whole, _) = behind_noise();
    let gaps = covary::data::simulate::hide(&whole, 0.1, 5);
    for (name, data, tied_noise) in
        [("free", &whole, false), ("free, gaps", &gaps, false), ("tied, gaps", &gaps, true)]
    {
        let fit = |acceleration| {
            let found =
                NoisyIca { tied_noise, acceleration, max_iterations: 2000, ..NoisyIca::new(2) }.fit(data);
            let found = found.unwrap();
            assert_eq!(found.termination, Termination::Converged, "{name}");
            assert!(found.trace.windows(2).all(|l| l[1] >= l[0] - 1e-12 * l[0].abs()), "{name}");
            (found.trace.len(), found.trace[found.trace.len() - 1])
        };
        let ((plain, low), (fast, high)) = (fit(Acceleration::Never), fit(Acceleration::Auto));
        eprintln!("{name}: {plain} plain steps, {fast} with extrapolation");
        assert!(4 * fast < plain, "{name}: {fast} and {plain}");
        // Both stop where 1e-8 nats per cell are left.
        assert!((high - low).abs() < 2e-8 * data.n_observed() as f64, "{name}: {low} and {high}");
    }
}

#[test]
fn a_noise_that_vanishes_stops_at_its_floor_and_is_named() {
    // One column is a source itself.
    let sources = drawn(500, 3);
    let rows = Matrix::from_fn(500, 3, |i, j| match j {
        0 => sources[(i, 1)],
        1 => sources[(i, 1)] + sources[(i, 0)],
        _ => sources[(i, 1)] - sources[(i, 2)],
    });
    let data = Dataset::with_names(rows, ["a", "b", "c"].map(str::to_owned).to_vec()).unwrap();
    let found = NoisyIca::new(1).fit(&data).unwrap();
    let said = found.warnings.iter().find(|w| matches!(w, Warning::NoiseAtFloor { .. })).expect("a warning");
    assert!(said.to_string().contains("the noise of `a` reached its floor"), "{said}");
    let share = found.model.noise_variances()[0] / data.observed_variances()[0];
    assert!((share - 0.005).abs() < 1e-12, "{share}");
}

#[test]
fn light_tails_behind_noise_are_doubted() {
    let sources = drawn(1000, 3);
    let light =
        Matrix::from_fn(1000, 4, |i, j| [0.2, 1.0, -0.7, 0.5][j] * sources[(i, 2)] + sources[(i, 0)] * 0.3);
    let data = Dataset::new(light).unwrap();
    let found = NoisyIca::new(1).fit(&data).unwrap();
    assert!(found.warnings.contains(&Warning::LightTails { sources: vec![1] }), "{:?}", found.warnings);
}

/// The fixed point of η of one row by the formulas of two sources, written out.
fn posterior_of_two(model: &NoisyMixing, row: &[f64]) -> ([f64; 2], [[f64; 2]; 2]) {
    let (w, psi) = (model.mixing(), model.noise_variances());
    let observed: Vec<usize> = (0..row.len()).filter(|&j| !row[j].is_nan()).collect();
    let sum = |f: &dyn Fn(usize) -> f64| observed.iter().map(|&j| f(j) / psi[j]).sum::<f64>();
    let [aa, ab, bb] = [(0, 0), (0, 1), (1, 1)].map(|(a, b)| sum(&|j| w[(j, a)] * w[(j, b)]));
    let linear = [0, 1].map(|a| sum(&|j| w[(j, a)] * (row[j] - model.mean()[j])));
    let mut eta = [1.0, 1.0];
    for _ in 0..2000 {
        let (p, r) = (aa + 2.0_f64.sqrt() / eta[0], bb + 2.0_f64.sqrt() / eta[1]);
        let det = p * r - ab * ab;
        let covariance = [[r / det, -ab / det], [-ab / det, p / det]];
        let mean = [0, 1].map(|a: usize| covariance[a][0] * linear[0] + covariance[a][1] * linear[1]);
        let next = [0, 1].map(|a: usize| (mean[a] * mean[a] + covariance[a][a]).sqrt());
        if next == eta {
            return (mean, covariance);
        }
        eta = next;
    }
    let (p, r) = (aa + 2.0_f64.sqrt() / eta[0], bb + 2.0_f64.sqrt() / eta[1]);
    let det = p * r - ab * ab;
    let covariance = [[r / det, -ab / det], [-ab / det, p / det]];
    ([0, 1].map(|a: usize| covariance[a][0] * linear[0] + covariance[a][1] * linear[1]), covariance)
}

#[test]
fn new_rows_of_noisy_sources_are_placed_and_filled_by_the_fixed_point() {
    let (whole, _) = behind_noise();
    let data = covary::data::simulate::hide(&whole, 0.3, 5);
    let model = NoisyIca::new(2).fit(&data).unwrap().model;
    let (sources, filled) = (model.transform(&data).unwrap(), model.fill(&data).unwrap());
    let w = model.mixing();
    for i in 0..data.n_rows() {
        let (mean, covariance) = posterior_of_two(&model, data.row(i));
        assert_close("sources", sources.row(i), &mean, 1e-8);
        for cell in filled.cells().iter().filter(|c| c.row == i) {
            let (a, b) = (w[(cell.column, 0)], w[(cell.column, 1)]);
            let want = a * mean[0] + b * mean[1] + model.mean()[cell.column];
            assert!((cell.mean - want).abs() < 1e-8);
            let spread = a * a * covariance[0][0] + 2.0 * a * b * covariance[0][1] + b * b * covariance[1][1];
            let sd = (spread + model.noise_variances()[cell.column]).sqrt();
            assert!((cell.sd - sd).abs() < 1e-8);
        }
    }
    let seen = data.values().as_slice().iter().zip(filled.values().as_slice()).filter(|(v, _)| !v.is_nan());
    assert!(seen.into_iter().all(|(a, b)| a.to_bits() == b.to_bits()));
    // A row is placed by itself, whatever stands around it, and an empty one at the mean.
    let alone = Dataset::new(Matrix::from_rows(&[data.row(7), &[f64::NAN; 4]])).unwrap();
    let placed = model.transform(&alone).unwrap();
    assert_eq!(placed.row(0), sources.row(7));
    assert_eq!(placed.row(1), [0.0, 0.0]);
    assert_eq!(model.fill(&alone).unwrap().values().row(1), model.mean());
    let back = model.decode(&placed).unwrap();
    assert_eq!(back.row(1), model.mean());
    let narrow = Dataset::new(Matrix::zeros(2, 3)).unwrap();
    assert!(matches!(model.transform(&narrow), Err(Error::ColumnCount { .. })));
    assert!(matches!(model.fill(&narrow), Err(Error::ColumnCount { .. })));
    assert!(matches!(model.decode(&Matrix::zeros(2, 3)), Err(Error::WrongLength { .. })));
}

#[test]
fn extreme_parameters_of_noisy_sources_give_numbers_or_an_error_and_no_panic() {
    let parts = |w: f64, psi: f64| {
        NoisyMixing::new(Matrix::from_rows(&[[w, w], [w, w]]), vec![1e300, 0.0], vec![psi; 2])
    };
    let rows = Dataset::new(Matrix::from_rows(&[[1.0, f64::NAN], [1e300, 1e-300], [f64::NAN; 2]])).unwrap();
    for (w, psi) in [(1e100, 1e-80), (1.0, 1e-30), (1e-200, 1e250), (0.0, 1.0), (1e144, 1.0)] {
        let model = parts(w, psi).unwrap();
        assert_eq!(model.transform(&rows).unwrap().n_rows(), 3);
        assert_eq!(model.fill(&rows).unwrap().cells().len(), 3);
    }
    for (w, psi) in [(1.0, 0.0), (1.0, 1e-300), (1e150, 1e-10), (f64::NAN, 1.0), (1.0, f64::INFINITY)] {
        assert!(matches!(parts(w, psi), Err(Error::OutOfRange { .. })), "{w} {psi}");
    }
}

#[test]
fn every_option_of_every_method_is_text_that_comes_back() {
    for &name in Method::NAMES {
        let method = Method::from_name(name).unwrap();
        let mut again = Method::from_name(name).unwrap();
        for (option, text) in method.options() {
            again.set(option, &text).unwrap();
        }
        assert_eq!((again.name(), &again), (name, &method));
    }
    let mut method = Method::from_name("fastica").unwrap();
    method.set("contrast", "logcosh 1.5").unwrap();
    method.set("n_components", "3").unwrap();
    let Method::Fast(fast) = &method else { panic!("fastica was asked for") };
    assert_eq!((fast.contrast, fast.n_components), (Contrast::LogCosh { a: 1.5 }, Some(3)));
    assert_eq!(method.options()["contrast"], "logcosh 1.5");
    assert!(matches!(method.set("contrast", "logcosh loud"), Err(Error::BadOption { .. })));
    assert!(matches!(method.set("sources", "super"), Err(Error::NoSuchOption { .. })));
    assert!(Method::from_name("em").is_none());
}
