//! The golden cases of the spec, which start both methods where no user would.

use super::Table;
use super::rotation::Turned;
use super::state::{Gamma, Prior, State};
use super::{MeanField, Scheme, Structured};
use crate::infer::em::parameters::Frame;
use crate::infer::golden::{check, flat, golden, matrix};
use crate::linalg::dot;
use crate::model::LinearGaussian;
use crate::spec::NoiseFamily;
use crate::{Dataset, Estimator, Matrix, Spec};
use serde_json::Value;

/// A golden case as the methods see it: raw data about 0, the start given.
struct Case {
    value: Value,
    data: Dataset,
    frame: Frame,
    prior: Prior,
    state: State,
    spec: Spec,
}

impl Case {
    fn open(name: &str, coupled: bool) -> Self {
        let value = golden(&format!("part2/{name}"));
        let input = &value["input"];
        let data = Dataset::new(matrix(&input["T"])).unwrap();
        let (d, q) = (data.n_columns(), input["q"].as_u64().unwrap() as usize);
        let hyper = |names: [&str; 2]| {
            names.iter().find_map(|name| input["hyper"][name].as_f64()).expect("a hyper-parameter")
        };
        let zeros = |key: &str, n: usize| input.get(key).filter(|v| v.is_array()).map_or(vec![0.0; n], flat);
        let groups = input.get("tau_group").map_or(1.0, |g| 1.0 + flat(g).iter().fold(0.0, |m, v| v.max(m)));
        let spec = if groups > 1.0 { Spec::factor_analysis(q) } else { Spec::ppca(q) };
        let view = zeros("alpha_group", d).into_iter().map(|v| v as usize).collect::<Vec<_>>();
        let views = 1 + view.iter().max().expect("columns");
        let frame = Frame::with_scale(vec![0.0; d], vec![1.0; d], groups == 1.0);
        let prior = Prior {
            relevance: Gamma { shape: hyper(["a_alpha", "c0"]), rate: hyper(["b_alpha", "d0"]) },
            noise: Gamma { shape: hyper(["a_tau", "a0"]), rate: hyper(["b_tau", "b0"]) },
            mean_precision: hyper(["beta", "beta0"]),
            mean: zeros("m0", d),
            offset: zeros("s0", q),
            in_noise_units: coupled,
        };
        let state = match input.get("start") {
            None => State {
                v: Matrix::zeros(d, q + 1),
                covariance: vec![Matrix::zeros(q + 1, q + 1)],
                noise: vec![Gamma { shape: 1.0, rate: 1.0 }],
                relevance: vec![vec![Gamma { shape: 1.0, rate: 1.0 }; q]; views],
                view,
                coupled,
            },
            Some(start) => {
                let (w, mean, row) =
                    (matrix(&start["E_W"]), flat(&start["E_mu"]), matrix(&start["Cov_w_row"]));
                let tau = start["E_tau"].as_f64().unwrap();
                let spread = if coupled { tau } else { 1.0 };
                State {
                    v: Matrix::from_fn(d, q + 1, |j, i| if i < q { w[(j, i)] } else { mean[j] }),
                    covariance: vec![Matrix::from_fn(q + 1, q + 1, |i, j| {
                        if i < q && j < q { spread * row[(i, j)] } else { 0.0 }
                    })],
                    noise: vec![Gamma { shape: tau, rate: 1.0 }; groups as usize],
                    relevance: vec![
                        flat(&start["E_alpha"])
                            .iter()
                            .map(|a| Gamma { shape: *a, rate: 1.0 })
                            .collect();
                        views
                    ],
                    view,
                    coupled,
                }
            }
        };
        Self { value, data, frame, prior, state, spec }
    }

    fn sweep(&mut self, scheme: &impl Scheme) -> f64 {
        let table = Table { rows: &self.data, facts: &self.data.facts() };
        scheme.sweep(table, &self.frame, &self.prior, &mut self.state).unwrap()
    }

    fn model(&self) -> LinearGaussian {
        let model = self.frame.model(&self.state.parameters(&self.frame), &self.spec).unwrap();
        model.with_uncertainty(self.state.uncertainty()).unwrap()
    }

    fn expected(&self, stage: &str, key: &str) -> &Value {
        &self.value["expected"][stage][key]
    }

    /// The trace, the factors after one sweep and after twenty, and the optimum.
    fn check(mut self, scheme: &(impl Scheme + Clone), expanded: &impl Scheme) {
        let mut before = self.model();
        let mut trace = Vec::new();
        for sweep in 0..20 {
            let posterior = self.model();
            trace.push(self.sweep(scheme));
            if sweep == 0 {
                if !self.expected("after_first_sweep", "E_x0").is_null() {
                    let x = posterior.posterior(&self.data).unwrap();
                    check("E_x0", x.mean.row(0), self.expected("after_first_sweep", "E_x0"), 1e-8);
                    check(
                        "Cov_x0",
                        x.covariance(0).as_slice(),
                        self.expected("after_first_sweep", "Cov_x0"),
                        1e-8,
                    );
                }
                self.check_state("after_first_sweep");
            }
            before = posterior;
        }
        check("trace", &trace, &self.value["expected"]["elbo_trace"], 1e-9);
        assert!(trace.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9 * pair[0].abs()));
        self.check_state("after_20");
        self.check_predictions(&before);

        if self.value["expected"].get("converged").is_some() {
            let mut bound = f64::NEG_INFINITY;
            for _ in 0..4000 {
                bound = self.sweep(expanded);
            }
            check("converged bound", &[bound], self.expected("converged", "elbo"), 1e-6);
            let w = self.state.v.first_columns(self.state.n_components());
            check("converged WWt", w.dot_t(&w).as_slice(), self.expected("converged", "WWt"), 1e-6);
            let mut fractions = self.state.signal_fractions(&self.prior).into_vec();
            fractions.sort_by(|a, b| b.total_cmp(a));
            check("signal", &fractions, self.expected("converged", "signal_fraction_sorted"), 1e-6);
            let live = fractions.iter().filter(|f| **f > super::LIVE).count();
            assert_eq!(Some(live as u64), self.expected("converged", "effective_dim").as_u64());
            let mut alpha = self.state.alpha().into_vec();
            alpha.sort_by(f64::total_cmp);
            check("E_alpha", &alpha, self.expected("converged", "E_alpha_sorted"), 1e-5);
        }
    }

    fn check_state(&self, stage: &str) {
        let (state, d, q) = (&self.state, self.data.n_columns(), self.state.n_components());
        let tau: Vec<f64> = state.noise.iter().map(Gamma::mean).collect();
        let w = state.v.first_columns(q);
        let (c0, mean) = (state.covariance(0), state.v.column(q));
        let block = Matrix::from_fn(q, q, |i, j| c0[(i, j)]);
        let s = |j: usize| -> Vec<f64> {
            // cov(w, μ) = cov(w) s
            let c = state.covariance(j);
            let block = Matrix::from_fn(q, q, |a, b| c[(a, b)]);
            let mut s: Vec<f64> = (0..q).map(|i| c[(i, q)]).collect();
            super::factorized(&block).unwrap().solve(&mut s);
            s
        };
        let by_key: [(&str, Vec<f64>); 12] = [
            ("E_tau", tau.clone()),
            ("E_alpha", state.alpha().into_vec()),
            ("E_mu", mean.clone()),
            ("E_W", w.as_slice().to_vec()),
            ("M_w_transposed", w.as_slice().to_vec()),
            ("Cov_w0", block.as_slice().to_vec()),
            ("inv_Lambda_w0", block.as_slice().to_vec()),
            ("WWt", w.dot_t(&w).into_vec()),
            ("a_tau", vec![state.noise[0].shape]),
            ("b_tau", vec![state.noise[0].rate]),
            ("d_alpha", state.relevance.iter().flatten().map(|g| g.rate).collect()),
            ("s_mu", (0..d).flat_map(&s).collect()),
        ];
        let mut seen = 0;
        for (key, got) in by_key {
            let want = self.expected(stage, key);
            if !want.is_null() {
                check(&format!("{stage} {key}"), &got, want, 1e-8);
                seen += 1;
            }
        }
        assert!(seen >= 3, "{stage} has nothing to compare");
    }

    /// Fitted values and both variances of every cell, from q(X) of the last sweep and q(W, μ, τ) after it.
    fn check_predictions(&self, before: &LinearGaussian) {
        let x = before.posterior(&self.data).unwrap();
        let model = self.model();
        let (mut fitted, mut mean_variance, mut predictive) = (Vec::new(), Vec::new(), Vec::new());
        // The golden q(X) has moved with the factors if there were moves; only its fit is comparable then.
        let moved = self.value["input"]["rotate"].as_bool() == Some(true);
        for i in 0..self.data.n_rows() {
            for j in 0..self.data.n_columns() {
                let (mean, v) = (x.mean.row(i), x.covariance(i));
                fitted.push(dot(model.loadings().row(j), mean) + model.mean()[j]);
                let (signal, noise) = model.cell_variance(j, mean, v);
                mean_variance.push(signal);
                predictive.push(signal + noise);
            }
        }
        if !moved {
            check("fitted", &fitted, self.expected("after_20", "fitted"), 1e-8);
            check("var_mean", &mean_variance, self.expected("after_20", "var_mean"), 1e-8);
            check("var_predictive", &predictive, self.expected("after_20", "var_predictive"), 1e-8);
        }
    }
}

fn mean_field(expansion: bool) -> MeanField {
    MeanField { expansion, ..MeanField::default() }
}

fn structured(expansion: bool) -> Structured {
    Structured { expansion, ..Structured::default() }
}

#[test]
fn mean_field_meets_its_golden_cases() {
    for name in ["complete", "missing", "informative", "rotated"] {
        let case = Case::open(&format!("vb_meanfield_{name}"), false);
        case.check(&mean_field(name == "rotated"), &mean_field(true));
    }
    for name in ["vb_factor_analysis_missing", "vb_gfa_two_views"] {
        Case::open(name, false).check(&mean_field(false), &mean_field(true));
    }
}

#[test]
fn structured_meets_its_golden_cases() {
    for name in ["complete", "missing", "prior_offset", "rotated"] {
        let case = Case::open(&format!("svb_{name}"), true);
        case.check(&structured(name == "rotated"), &structured(true));
    }
}

#[test]
fn the_gradient_of_a_rotation_meets_its_golden_case() {
    let case = golden("part2/gfa_rotation_gradient");
    let (input, want) = (&case["input"], &case["expected"]);
    let number = |key: &str| input[key].as_f64().unwrap();
    let turned = Turned {
        p: matrix(&input["P"]),
        k: input["K"].as_array().unwrap().iter().map(matrix).collect(),
        sizes: flat(&input["dims"]).iter().map(|d| *d as usize).collect(),
        n: number("N"),
        relevance: Gamma { shape: number("a_alpha"), rate: number("b_alpha") },
    };
    let (value, gradient) = turned.value_and_gradient(&matrix(&input["R"])).unwrap();
    let tolerance = case["tolerance"]["values_rel"].as_f64().unwrap();
    check("value", &[value], &want["value"], tolerance);
    check("gradient", gradient.as_slice(), &want["gradient"], tolerance);
    // The best turn is where the gradient vanishes, and raises the bound.
    let best = turned.best().unwrap().unwrap();
    let (there, gradient) = turned.value_and_gradient(&best.by).unwrap();
    let (here, _) = turned.value_and_gradient(&Matrix::identity(3)).unwrap();
    assert!(there > here, "{there} from {here}");
    let length = dot(gradient.as_slice(), gradient.as_slice()).sqrt();
    assert!(length < 1e-3 * turned.n, "{length}");
}

/// On two tiny tables the evidence is known: no bound exceeds it, and under one prior the structured
/// bound is above the mean-field one.
#[test]
fn bounds_are_in_order_below_the_evidence() {
    for name in ["evidence_bound_0", "evidence_bound_1"] {
        let best = |coupled: bool, in_noise_units: bool| {
            let starts = (3..=15).map(|c| f64::from(c) / 10.0);
            let bound = |c: f64| {
                let mut case = Case::open(name, coupled);
                case.prior.in_noise_units = in_noise_units;
                for (j, w) in [1.5, -1.0].into_iter().enumerate() {
                    case.state.v[(j, 0)] = c * w;
                }
                let mut last =
                    |sweep: &dyn Fn(&mut Case) -> f64| (0..3000).map(|_| sweep(&mut case)).last().unwrap();
                if coupled {
                    last(&|c| c.sweep(&structured(true)))
                } else {
                    last(&|c| c.sweep(&mean_field(true)))
                }
            };
            starts.map(bound).fold(f64::NEG_INFINITY, f64::max)
        };
        let want = &golden(&format!("part2/{name}"))["expected"];
        let (same, other) = (&want["structured_prior"], &want["independent_prior"]);
        let (together, apart, independent) = (best(true, true), best(false, true), best(false, false));
        check("structured", &[together], &same["elbo_structured"], 1e-5);
        check("mean-field, same prior", &[apart], &same["elbo_meanfield_same_prior"], 1e-5);
        check("mean-field", &[independent], &other["elbo_meanfield"], 1e-5);
        let evidence =
            |of: &Value| of["log_evidence"].as_f64().unwrap() + 3.0 * of["log_evidence_se"].as_f64().unwrap();
        assert!(apart <= together && together <= evidence(same) && independent <= evidence(other));
    }
}

#[test]
fn the_predictive_density_meets_its_golden_case() {
    let mut case = Case::open("svb_predictive", true);
    (0..15).for_each(|_| {
        case.sweep(&structured(false));
    });
    let (model, want) = (case.model(), &case.value["expected"]);
    check("mean", model.mean(), &want["mean"], 1e-8);
    check("covariance", model.predictive_covariance().as_slice(), &want["cov"], 1e-8);
    let (points, x) = (matrix(&case.value["input"]["test_points"]), matrix(&case.value["input"]["x"]));
    let given: Vec<f64> = points
        .rows()
        .flat_map(|row| x.rows().map(|x| model.log_student(row, x)).collect::<Vec<_>>())
        .collect();
    check("log_student", &given, &want["log_student"], 1e-8);
    let got = model.predictive_log_density(&Dataset::new(points).unwrap(), 50_000, 1).unwrap();
    let (values, errors) = (flat(&want["log_predictive"]), flat(&want["log_predictive_se"]));
    for ((got, want), error) in got.iter().zip(values).zip(errors) {
        let combined = got.standard_error.hypot(error);
        assert!((got.value - want).abs() <= 4.0 * combined, "got {got:?}, want {want} ± {error}");
    }
}

/// At any sweep, with and without gaps and expansions, for either noise.
#[test]
fn the_bound_never_falls() {
    let (whole, _) =
        crate::data::simulate::ppca(crate::data::Shape { rows: 40, columns: 7, n_components: 3 }, 5);
    let hidden = crate::data::simulate::hide(&whole, 0.3, 6);
    for data in [&whole, &hidden] {
        for expansion in [true, false] {
            for family in [NoiseFamily::Isotropic, NoiseFamily::Diagonal] {
                let spec = Spec { noise: family, allow_unidentified: true, ..Spec::ppca(5) };
                let fit = MeanField { tolerance: 0.0, max_iterations: 60, ..mean_field(expansion) }
                    .fit(data, &spec)
                    .unwrap();
                rising(&fit);
                if family == NoiseFamily::Isotropic {
                    let method = Structured { tolerance: 0.0, max_iterations: 60, ..structured(expansion) };
                    rising(&method.fit(data, &spec).unwrap());
                }
            }
        }
    }
}

#[track_caller]
fn rising(fit: &crate::Fit) {
    let trace = &fit.report.trace;
    assert!(trace.windows(2).all(|pair| pair[1] >= pair[0] - 1e-9 * pair[0].abs()), "{trace:?}");
}
