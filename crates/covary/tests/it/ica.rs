//! Independent components: golden cases, scikit-learn's fixed points, identities, real sounds, and what is refused.

use crate::common::{assert_close, dataset, flat, golden, matrix};
use covary::ica::{
    Algorithm, Contrast, FastIca, Kind, MaximumLikelihood, NoisyIca, Separation, Sources, Unmixing, Warning,
    amari_index,
};
use covary::infer::{Step, Termination};
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
        let back = model.reconstruct(&s).unwrap();
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

#[test]
fn the_same_bits_on_one_thread_and_two() {
    let data = mixed(&drawn(9000, 9), &mixing());
    let on = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let fast = FastIca::default().fit(&data).unwrap();
            let likely = MaximumLikelihood::default().fit(&data).unwrap();
            let sources = fast.model.transform(&data).unwrap();
            [fast.model.unmixing().clone(), likely.model.unmixing().clone(), sources]
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
    assert!(matches!(found.reconstruct(&Matrix::zeros(2, 3)), Err(Error::WrongLength { .. })));
}

#[test]
fn noisy_sources_meet_the_golden_cases() {
    for name in ["ica_noisy_laplace_free", "ica_noisy_laplace_tied"] {
        let case = golden("part2", name);
        let (input, want) = (&case["input"], &case["expected"]);
        let data = dataset(&input["T"]);
        let psi = vec![input["psi0"].as_f64().unwrap(); 5];
        let fit = NoisyIca {
            tied_noise: input["tied_noise"].as_bool().unwrap(),
            max_iterations: 20,
            tolerance: 0.0,
            start: Some((matrix(&input["W0"]), data.observed_means().to_vec(), psi)),
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
        assert_close("ψ", &found.noise_variances, &flat(&want["psi"]), tolerance);
        assert_close("μ", &found.mean, &flat(&want["mu"]), tolerance);
        assert_close("WWᵀ", found.mixing.dot_t(&found.mixing).as_slice(), &flat(&want["WWt"]), tolerance);
    }
}

#[test]
fn noisy_sources_are_separated_with_gaps() {
    let sources = drawn(2000, 3);
    let heavy = Matrix::from_fn(2000, 2, |i, k| sources[(i, 2 * k + 1)]);
    let mixing = Matrix::from_rows(&[[2.0, 0.6], [0.4, 1.0], [-0.2, 0.9], [1.0, -0.5]]);
    let noise: Vec<Matrix> = (0..4).map(|j| drawn(2000, 20 + j)).collect();
    let rows = heavy.dot_t(&mixing);
    let noisy = Matrix::from_fn(2000, 4, |i, j| rows[(i, j)] + noise[j][(i, 0)]);
    let data = covary::data::simulate::hide(&Dataset::new(noisy).unwrap(), 0.1, 5);
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
        let best = (0..2).map(|i| cosine(&found.mixing.column(i), &mixing.column(k))).fold(0.0, f64::max);
        assert!(best > 0.98, "{best}");
    }
    assert!(matches!(NoisyIca::new(0).fit(&data), Err(Error::OutOfRange { .. })));
    let constant = Dataset::new(Matrix::from_fn(20, 2, |i, j| (i * j) as f64)).unwrap();
    assert!(matches!(NoisyIca::new(1).fit(&constant), Err(Error::ConstantColumn { .. })));
    let start = Some((Matrix::zeros(3, 2), vec![0.0; 4], vec![1.0; 4]));
    assert!(matches!(NoisyIca { start, ..NoisyIca::new(2) }.fit(&data), Err(Error::WrongLength { .. })));
}
