//! Does *every* case behave? One list of estimators × one list of laws [M 1.11].
//!
//! A new estimator is one line in [`methods`]; a new law is one function and one line in [`laws`].

use crate::common::assert_close;
use crate::dense::{self, Gaussian};
use covary::data::{Shape, simulate};
use covary::dynamics::{DynamicEm, Season};
use covary::family::{AnyMethod, Components, Family, Request};
use covary::functional::{FunctionalEm, Smoothing, simulated};
use covary::ica;
use covary::infer::{
    Acceleration, BachJordan, ConditionalMaximization, DegreesOfFreedom, Em, Evidence, Fit, FixedPoint,
    FullCovariance, Gibbs, Init, LatentMoments, MixtureEm, Newton, Nonzero, ObjectiveKind, SharedPrivate,
    Solver, SparseEm, Spectral, Step, StudentT, Termination, Update, Warning,
};
use covary::io::model_file;
use covary::learned::{Learned, Rows};
use covary::spec::{NoiseFamily, Prior};
use covary::{
    CentralMoments, Coordinates, Dataset, Density, Estimator, LinearGaussian, Matrix, Method, Noise,
    Reconstruction, Spec,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An estimator, what to ask of it, and what it promises.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    /// What to fit with this many components.
    pub(crate) spec: fn(usize) -> Spec,
    pub(crate) gaps: Gaps,
    /// How it fares when the noise is 1e-10 of the signal.
    tiny_noise: TinyNoise,
}

/// Whether a case takes tables with gaps.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Gaps {
    Exact,
    Refused,
}

/// What a case promises at a noise variance of 1e-10.
#[derive(Clone, Copy, PartialEq)]
enum TinyNoise {
    /// Six digits of it.
    Exact,
    /// The order of magnitude: asked to square the table, it loses the digits squaring loses.
    Squared,
    /// Finite numbers that never fall, but not the limit: plain EM crawls [M 1.4.3], and a prior or
    /// a floor holds the noise up.
    Stable,
}

use Gaps::{Exact as AnyGaps, Refused as NoGaps};

/// Every case, one line each.
pub(crate) fn cases() -> Vec<Case> {
    let spectral = |solver| Method::Spectral(Spectral { solver, ..Spectral::default() });
    let em = |parameter_expansion, acceleration| {
        Method::Em(Em { parameter_expansion, acceleration, ..Em::default() })
    };
    let (px, plain) = (em(true, Acceleration::Auto), em(false, Acceleration::Never));
    let squarem = em(true, Acceleration::Squarem);
    let newton = Method::Newton(Newton::default());
    let cm = Method::ConditionalMaximization(ConditionalMaximization::default());
    let fixed_point = Method::FixedPoint(FixedPoint::default());
    let evidence = Method::Evidence(Evidence::default());
    let full =
        |pseudo_rows| Method::FullCovariance(FullCovariance { pseudo_rows, ..FullCovariance::default() });
    // Few draws: the laws are about every one of them.
    let gibbs = Method::Gibbs(Gibbs { chains: 2, draws: 6, warm_up: 10, thin: 1, ..Gibbs::default() });
    let ppca: fn(usize) -> Spec = Spec::ppca;
    let fa: fn(usize) -> Spec = Spec::factor_analysis;
    let standardized = |q| Spec { standardize: true, ..Spec::factor_analysis(q) };
    let weak = |q| Spec { prior: Prior::weak(), ..Spec::ppca(q) };
    let case = |name, method, spec, gaps, tiny_noise| Case { name, method, spec, gaps, tiny_noise };
    vec![
        case("spectral", spectral(Solver::Auto), ppca, NoGaps, TinyNoise::Exact),
        case("spectral by covariance", spectral(Solver::Covariance), ppca, NoGaps, TinyNoise::Squared),
        case("spectral by Gram matrix", spectral(Solver::Gram), ppca, NoGaps, TinyNoise::Squared),
        case("spectral by SVD", spectral(Solver::Svd), ppca, NoGaps, TinyNoise::Exact),
        case("spectral by Krylov", spectral(Solver::Krylov), ppca, NoGaps, TinyNoise::Squared),
        case("PX-EM", px.clone(), ppca, AnyGaps, TinyNoise::Exact),
        case("plain EM", plain.clone(), ppca, AnyGaps, TinyNoise::Stable),
        case("SQUAREM", squarem.clone(), ppca, AnyGaps, TinyNoise::Exact),
        case("EM with a weak prior", px.clone(), weak, AnyGaps, TinyNoise::Stable),
        case("PX-EM, diagonal noise", px, fa, AnyGaps, TinyNoise::Stable),
        case("plain EM, diagonal noise", plain, fa, AnyGaps, TinyNoise::Stable),
        case("SQUAREM, diagonal noise", squarem, fa, AnyGaps, TinyNoise::Stable),
        case("Newton", newton, fa, NoGaps, TinyNoise::Stable),
        case("conditional maximization", cm, fa, NoGaps, TinyNoise::Stable),
        case("fixed point", fixed_point, standardized, NoGaps, TinyNoise::Stable),
        case("full covariance", full(5.0), ppca, AnyGaps, TinyNoise::Stable),
        case("full covariance without pseudo-rows", full(0.0), ppca, AnyGaps, TinyNoise::Stable),
        case("evidence", evidence, ppca, AnyGaps, TinyNoise::Stable),
        case("Gibbs", gibbs.clone(), ppca, AnyGaps, TinyNoise::Stable),
        case("Gibbs, diagonal noise", gibbs, fa, AnyGaps, TinyNoise::Stable),
    ]
}

/// The methods that end in a distribution of the parameters, whose laws are in `variational.rs`.
pub(crate) fn variational_cases() -> Vec<Case> {
    let case = |name, method: &str, spec: fn(usize) -> Spec| Case {
        name,
        method: Method::from_name(method).expect("a case"),
        spec,
        gaps: Gaps::Exact,
        tiny_noise: TinyNoise::Stable,
    };
    vec![
        case("structured", "structured", Spec::ppca),
        case("mean-field", "mean-field", Spec::ppca),
        case("mean-field, diagonal noise", "mean-field", Spec::factor_analysis),
        case("spike and slab", "spike-slab", Spec::ppca),
    ]
}

/// The methods to rows of heavy tails, whose dense formulas are in `student.rs`.
pub(crate) fn tailed_cases() -> Vec<Case> {
    let case = |name, degrees_of_freedom| Case {
        name,
        method: Method::StudentT(StudentT { degrees_of_freedom, ..StudentT::default() }),
        spec: Spec::ppca,
        gaps: Gaps::Exact,
        tiny_noise: TinyNoise::Stable,
    };
    vec![
        case("Student's t", DegreesOfFreedom::Estimated),
        case("Student's t with 4 degrees of freedom", DegreesOfFreedom::Fixed(4.0)),
    ]
}

/// Sparse loadings, whose laws of their own are in `sparse.rs`.
pub(crate) fn sparse_cases() -> Vec<Case> {
    let case = |name, method, spec| Case {
        name,
        method: Method::SparseEm(method),
        spec,
        gaps: Gaps::Exact,
        tiny_noise: TinyNoise::Stable,
    };
    let ppca: fn(usize) -> Spec = Spec::ppca;
    let four = SparseEm { n_nonzero: Nonzero::Each(4), ..SparseEm::default() };
    let penalized = SparseEm { penalty: Some(0.05), ..SparseEm::default() };
    vec![
        case("sparse loadings", SparseEm::default(), ppca),
        case("four loadings each", four, ppca),
        case("penalized loadings", penalized, ppca),
        case("sparse factors", SparseEm::default(), Spec::factor_analysis),
    ]
}

/// The methods to models of two views, each with any covariance within.
pub(crate) fn view_cases() -> Vec<Case> {
    let case = |name, method, gaps| Case {
        name,
        method,
        spec: |q| Spec::of_views(q, vec![4, 5]),
        gaps,
        tiny_noise: TinyNoise::Stable,
    };
    vec![
        case("Bach and Jordan", Method::BachJordan(BachJordan::default()), NoGaps),
        case("shared and private components", Method::SharedPrivate(SharedPrivate::default()), AnyGaps),
    ]
}

/// The methods to mixtures, and what each of their models is.
fn mixture_cases() -> Vec<(&'static str, MixtureEm, Spec)> {
    let latent = MixtureEm { update: Update::Latent, ..MixtureEm::of(2) };
    vec![
        ("mixture of PPCAs", MixtureEm::of(2), Spec::ppca(1)),
        ("mixture of PPCAs by latent moments", latent, Spec::ppca(1)),
        ("mixture of factor analyzers", MixtureEm::of(2), Spec::factor_analysis(1)),
        ("mixture of Gaussians", MixtureEm::of(2), Spec::ppca(4)),
    ]
}

/// The methods to independent sources, and whether they take gaps.
fn source_cases() -> Vec<(&'static str, ica::Method, Gaps)> {
    let named = |name| ica::Method::from_name(name).expect("a case");
    vec![
        ("FastICA", named("fastica"), NoGaps),
        ("maximum likelihood", named("maximum-likelihood"), NoGaps),
        ("noisy sources", ica::Method::Noisy(ica::NoisyIca::new(2)), AnyGaps),
    ]
}

/// The method to models of rows in time, as it is asked for.
fn dynamic_cases() -> Vec<(&'static str, DynamicEm)> {
    let season = Season::Harmonics { period: 12.0, n: 1 };
    vec![
        ("dynamic factors", DynamicEm::default()),
        (
            "of order 2, with a season and a trend",
            DynamicEm { order: 2, season, trend: true, ..DynamicEm::default() },
        ),
    ]
}

/// The method to models of curves, as it is asked for.
fn functional_cases() -> Vec<(&'static str, FunctionalEm)> {
    let smoothing = Smoothing::Given { mean: 1e-3, components: 1e-3 };
    vec![
        ("curves", FunctionalEm::default()),
        (
            "curves of given smoothness",
            FunctionalEm { smoothing, basis_size: Some(8), ..FunctionalEm::default() },
        ),
    ]
}

#[test]
fn every_method_has_signed_the_contract() {
    let linear =
        [cases(), variational_cases(), tailed_cases(), sparse_cases(), view_cases()].into_iter().flatten();
    let mut signed: Vec<&str> = linear.map(|case| case.method.name()).collect();
    signed.extend(mixture_cases().iter().map(|(_, method, _)| AnyMethod::from(method.clone()).name()));
    signed.extend(source_cases().iter().map(|(_, method, _)| method.name()));
    signed.extend(dynamic_cases().iter().map(|(_, method)| AnyMethod::from(method.clone()).name()));
    signed.extend(functional_cases().iter().map(|(_, method)| AnyMethod::from(method.clone()).name()));
    let missing: Vec<&str> = AnyMethod::names().into_iter().filter(|name| !signed.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}: give each a case here");
}

impl Case {
    pub(crate) fn is_isotropic(&self) -> bool {
        (self.spec)(0).noise == NoiseFamily::Isotropic
    }

    /// Maximum likelihood, without a prior of any kind.
    pub(crate) fn is_flat(&self) -> bool {
        let own_prior = self.prunes() || matches!(self.method, Method::SpikeSlab(_));
        (self.spec)(0).prior.is_flat() && !own_prior && self.pseudo_rows().is_none_or(|n| n == 0.0)
    }

    /// The pseudo-rows of the case that fits all components but one, whatever their number.
    pub(crate) fn pseudo_rows(&self) -> Option<f64> {
        match &self.method {
            Method::FullCovariance(full) => Some(full.pseudo_rows),
            _ => None,
        }
    }

    /// `asked` components, where the case has a choice and the table room.
    pub(crate) fn spec_for(&self, data: &Dataset, asked: usize) -> Spec {
        let all = data.n_columns() - 1;
        if self.has_views() {
            let first = data.n_columns() / 2;
            return Spec { views: vec![first, data.n_columns() - first], ..(self.spec)(asked) };
        }
        (self.spec)(if self.pseudo_rows().is_some() && asked <= all { all } else { asked })
    }

    /// Whether it is a case of two views.
    fn has_views(&self) -> bool {
        !(self.spec)(0).views.is_empty()
    }

    /// Whether it may return fewer components than asked, by precisions it estimates.
    pub(crate) fn prunes(&self) -> bool {
        matches!(self.method, Method::Evidence(_) | Method::Structured(_) | Method::MeanField(_))
    }

    /// Whether the case looks for a maximum. One that samples answers with an average of draws, and
    /// rows, columns and axes that change places meet other random numbers.
    pub(crate) fn maximizes(&self) -> bool {
        !matches!(self.method, Method::Gibbs(_))
    }

    fn fit(&self, data: &Dataset, q: usize) -> Fit {
        self.method.fit(data, &self.spec_for(data, q)).expect("a well-posed table")
    }

    /// The same case walked to its end: parameters at 1e-9 need more than the likelihood, flat to
    /// rounding there, can tell, so that the steps of EM are counted instead.
    fn to_the_end(&self) -> Self {
        let method = match self.method.clone() {
            Method::Em(em) => {
                // Plain EM crawls, most of all with diagonal noise [M 1.12].
                let crawls = !em.parameter_expansion && !self.is_isotropic();
                let max_iterations = if crawls { 8000 } else { 1500 };
                Method::Em(Em { tolerance: 0.0, max_iterations, ..em })
            }
            Method::ConditionalMaximization(cm) => {
                Method::ConditionalMaximization(ConditionalMaximization { tolerance: 1e-12, ..cm })
            }
            Method::FixedPoint(case) => {
                Method::FixedPoint(FixedPoint { tolerance: 0.0, max_iterations: 8000, ..case })
            }
            Method::FullCovariance(full) => {
                Method::FullCovariance(FullCovariance { tolerance: 0.0, max_iterations: 300, ..full })
            }
            Method::Evidence(evidence) => {
                Method::Evidence(Evidence { tolerance: 0.0, max_iterations: 1500, ..evidence })
            }
            Method::SharedPrivate(method) => {
                Method::SharedPrivate(SharedPrivate { tolerance: 0.0, max_iterations: 3000, ..method })
            }
            Method::StudentT(StudentT { em, degrees_of_freedom }) => {
                let em = Em { tolerance: 0.0, max_iterations: 300, ..em };
                Method::StudentT(StudentT { em, degrees_of_freedom })
            }
            Method::SparseEm(SparseEm { em, n_nonzero, penalty }) => {
                let em = Em { tolerance: 0.0, max_iterations: 3000, ..em };
                Method::SparseEm(SparseEm { em, n_nonzero, penalty })
            }
            other => other,
        };
        Self { method, ..*self }
    }

    /// As far as two walks that differ in rounding stay together: extrapolation spreads them,
    /// conditional maximization visits the columns in order, and the fixed point crawls, so that only their
    /// ends compare.
    fn settled(&self) -> Self {
        let spreads = match &self.method {
            Method::Em(em) => em.acceleration != Acceleration::Never && self.is_flat(),
            method => matches!(
                method,
                Method::ConditionalMaximization(_)
                    | Method::FixedPoint(_)
                    | Method::FullCovariance(_)
                    | Method::SharedPrivate(_)
                    | Method::StudentT(_)
                    | Method::SparseEm(_)
            ),
        };
        if spreads { self.to_the_end() } else { Self { method: self.method.clone(), ..*self } }
    }

    /// A table of the case's own family: 60 × 9 with two clear components.
    fn table(&self, seed: u64) -> Dataset {
        let shape = Shape { rows: 60, columns: 9, n_components: 2 };
        if self.is_isotropic() {
            simulate::ppca(shape, seed).0
        } else {
            simulate::factor_analysis(shape, seed).0
        }
    }

    /// The table as far as the case takes it: with gaps if it can.
    fn own_table(&self, seed: u64) -> Dataset {
        match self.gaps {
            Gaps::Exact => simulate::hide(&self.table(seed), 0.15, seed + 50),
            Gaps::Refused => self.table(seed),
        }
    }
}

/// Holds every case to one law and names those that break it.
fn check_every_method(cases: &[Case], law: fn(&Case)) {
    let broken: Vec<&str> = cases
        .iter()
        .filter(|case| catch_unwind(AssertUnwindSafe(|| law(case))).is_err())
        .map(|case| case.name)
        .collect();
    assert!(broken.is_empty(), "broken by {broken:?}");
}

macro_rules! laws {
    ($($law:ident),* $(,)?) => {
        $(#[test]
        fn $law() {
            check_every_method(&cases(), law::$law);
        })*
    };
}

laws![
    log_density_is_the_dense_gaussian,
    the_objective_never_falls,
    the_objective_is_that_of_the_model,
    the_gradient_vanishes_at_the_limit,
    all_methods_of_a_family_meet,
    one_component_less_than_columns_gives_the_sample_covariance,
    without_components_the_answer_is_exact,
    turning_the_data_turns_ppca,
    shifting_and_stretching_the_data_shifts_and_stretches_the_model,
    factor_analysis_follows_column_units_and_ppca_does_not,
    standardized_ppca_follows_column_units,
    the_order_of_rows_does_not_matter,
    the_order_of_columns_does_not_matter,
    rows_of_only_gaps_change_nothing,
    em_from_turned_loadings_ends_at_the_same_model,
    scores_at_the_optimum_have_unit_second_moment,
    gaps_are_filled_by_the_dense_conditional,
    draws_of_gaps_have_the_moments_of_the_conditional,
    a_hidden_cell_is_predicted_without_its_value,
    any_sharding_gives_the_same_step,
    an_offset_of_a_million_costs_no_digits,
    tiny_noise_is_found_or_held_at_a_stated_floor,
    the_likelihood_never_falls_with_components,
    factor_analysis_is_never_worse_than_ppca,
    a_factor_optimum_meets_the_variances,
    a_probabilistic_round_trip_keeps_the_distribution,
    threads_and_repetition_leave_no_trace,
    the_same_seed_gives_the_same_numbers,
    reconstruction_is_transform_then_decode,
    save_load_same_answer,
    answers_are_the_dense_ones_in_the_scale_of_the_fit,
    a_table_standardized_by_hand_gives_the_same_answers,
];

/// Laws of models of two views. The first are those above, as they are. The others have a form of their own: loadings
/// have structural zeros, so that they are no canonical form of `W` and not at a stationary point of all of it, and
/// covariances are compared instead. What is left out: the laws of one noise for all columns or one for each
/// (`tiny_noise…`, `factor_analysis_is_never_worse…`, `a_factor_optimum…`, `turning_the_data…`: any covariance within a
/// view takes their place), of one method (`em_from_turned_loadings…`), and of scores
/// (`scores_at_the_optimum…`: private components of different views stay correlated).
mod of_views {
    use super::*;

    macro_rules! laws {
        ($($module:ident::$law:ident),* $(,)?) => {
            $(#[test]
            fn $law() {
                check_every_method(&view_cases(), $module::$law);
            })*
        };
    }

    laws![
        law::log_density_is_the_dense_gaussian,
        law::the_objective_never_falls,
        law::the_objective_is_that_of_the_model,
        law::rows_of_only_gaps_change_nothing,
        law::gaps_are_filled_by_the_dense_conditional,
        law::draws_of_gaps_have_the_moments_of_the_conditional,
        law::a_hidden_cell_is_predicted_without_its_value,
        law::any_sharding_gives_the_same_step,
        law::the_likelihood_never_falls_with_components,
        law::a_probabilistic_round_trip_keeps_the_distribution,
        law::threads_and_repetition_leave_no_trace,
        law::the_same_seed_gives_the_same_numbers,
        law::reconstruction_is_transform_then_decode,
        law::save_load_same_answer,
        law::answers_are_the_dense_ones_in_the_scale_of_the_fit,
        view_law::the_gradient_vanishes_at_the_limit,
        view_law::all_methods_meet,
        view_law::within_views_the_covariance_is_that_of_the_sample,
        view_law::with_all_components_it_is_the_sample_covariance,
        view_law::without_components_views_are_independent,
        view_law::a_map_of_each_view_maps_the_model,
        view_law::the_order_of_rows_does_not_matter,
        view_law::the_order_of_views_does_not_matter,
        view_law::standardized_or_not_is_the_same_model,
        view_law::an_offset_of_a_million_costs_no_digits,
    ];
}

/// Laws of rows with heavy tails: those above that say nothing of the Gaussian.
mod of_tails {
    use super::*;

    macro_rules! laws {
        ($($law:ident),* $(,)?) => {
            $(#[test]
            fn $law() {
                check_every_method(&tailed_cases(), law::$law);
            })*
        };
    }

    laws![
        the_objective_never_falls,
        turning_the_data_turns_ppca,
        shifting_and_stretching_the_data_shifts_and_stretches_the_model,
        standardized_ppca_follows_column_units,
        the_order_of_rows_does_not_matter,
        the_order_of_columns_does_not_matter,
        rows_of_only_gaps_change_nothing,
        a_hidden_cell_is_predicted_without_its_value,
        an_offset_of_a_million_costs_no_digits,
        the_likelihood_never_falls_with_components,
        threads_and_repetition_leave_no_trace,
        the_same_seed_gives_the_same_numbers,
        reconstruction_is_transform_then_decode,
        save_load_same_answer,
        a_table_standardized_by_hand_gives_the_same_answers,
    ];
}

/// Laws of sparse loadings, which no rotation leaves as they are: those above that say nothing of canonical forms.
mod of_sparse_loadings {
    use super::*;

    macro_rules! laws {
        ($($law:ident),* $(,)?) => {
            $(#[test]
            fn $law() {
                check_every_method(&sparse_cases(), law::$law);
            })*
        };
    }

    laws![
        log_density_is_the_dense_gaussian,
        the_objective_never_falls,
        without_components_the_answer_is_exact,
        shifting_and_stretching_the_data_shifts_and_stretches_the_model,
        the_order_of_rows_does_not_matter,
        the_order_of_columns_does_not_matter,
        rows_of_only_gaps_change_nothing,
        gaps_are_filled_by_the_dense_conditional,
        draws_of_gaps_have_the_moments_of_the_conditional,
        a_hidden_cell_is_predicted_without_its_value,
        an_offset_of_a_million_costs_no_digits,
        a_probabilistic_round_trip_keeps_the_distribution,
        threads_and_repetition_leave_no_trace,
        the_same_seed_gives_the_same_numbers,
        reconstruction_is_transform_then_decode,
        save_load_same_answer,
        a_table_standardized_by_hand_gives_the_same_answers,
    ];
}

mod view_law {
    use super::*;

    /// Mean and covariance: what rows have to do with the parameters.
    #[track_caller]
    fn assert_same_rows(got: &LinearGaussian, mean: &[f64], covariance: &Matrix, tolerance: f64) {
        assert_close("μ", got.mean(), mean, tolerance);
        assert_close("C", got.covariance().as_slice(), covariance.as_slice(), tolerance);
    }

    fn same_view(i: usize, j: usize) -> bool {
        (i < 4) == (j < 4)
    }

    /// In what is free: shared loadings, private ones of the own view, mean, and one noise for each view.
    pub(super) fn the_gradient_vanishes_at_the_limit(case: &Case) {
        let data = case.own_table(1);
        let model = case.to_the_end().fit(&data, 2).model;
        let gradient = LatentMoments::new(&model, &data).unwrap().gradient();
        let w = model.loadings();
        let of_view = |k: usize, view: std::ops::Range<usize>| view.into_iter().any(|j| w[(j, k)] != 0.0);
        for k in 0..w.n_columns() {
            assert_eq!(k < 2, of_view(k, 0..4) && of_view(k, 4..9), "the shared ones come first");
            for j in (0..9).filter(|&j| w[(j, k)] != 0.0) {
                assert_close("∂W", &[gradient.loadings[(j, k)]], &[0.0], 1e-6);
            }
        }
        assert_close("∂μ", &gradient.mean, &[0.0; 9], 1e-6);
        for view in [0..4, 4..9] {
            assert_close("∂σ²", &[gradient.noise[view].iter().sum()], &[0.0], 1e-6);
        }
    }

    pub(super) fn all_methods_meet(case: &Case) {
        for seed in 1..4 {
            let data = case.table(seed);
            let want = BachJordan::default().fit(&data, &case.spec_for(&data, 2)).unwrap();
            let got = case.to_the_end().fit(&data, 2);
            assert_same_rows(&got.model, want.model.mean(), &want.model.covariance(), 1e-7);
            assert_close("ℓ", &[got.report.objective.value], &[want.report.objective.value], 1e-9);
            let stopped = case.fit(&data, 2).report;
            let short = want.report.objective.value - stopped.objective.value;
            assert!(short < 1e-6 || !stopped.converged(), "{short:e} nats short");
        }
    }

    pub(super) fn within_views_the_covariance_is_that_of_the_sample(case: &Case) {
        let data = case.table(1);
        let want = dense::moments(data.values());
        for q in 0..4 {
            let model = case.to_the_end().fit(&data, q).model;
            let c = model.covariance();
            assert_close("μ", model.mean(), &want.mean, 1e-8);
            for (i, j) in (0..9).flat_map(|i| (0..9).map(move |j| (i, j))).filter(|&(i, j)| same_view(i, j)) {
                assert_close("C within a view", &[c[(i, j)]], &[want.covariance[(i, j)]], 1e-7);
            }
        }
    }

    pub(super) fn with_all_components_it_is_the_sample_covariance(case: &Case) {
        let data = case.table(1);
        let want = dense::moments(data.values());
        let model = case.to_the_end().fit(&data, 4).model;
        assert_same_rows(&model, &want.mean, &want.covariance, 1e-7);
    }

    pub(super) fn without_components_views_are_independent(case: &Case) {
        let data = case.table(1);
        let want = dense::moments(data.values());
        let blocks =
            Matrix::from_fn(9, 9, |i, j| if same_view(i, j) { want.covariance[(i, j)] } else { 0.0 });
        assert_same_rows(&case.to_the_end().fit(&data, 0).model, &want.mean, &blocks, 1e-8);
    }

    /// Canonical correlations do not change, and all else follows the map: t → A t + b in each view.
    pub(super) fn a_map_of_each_view_maps_the_model(case: &Case) {
        let data = case.table(1);
        let free = dense::normal(9, 9, 8);
        let entry = |i: usize, j: usize| match (same_view(i, j), i == j) {
            (true, true) => 2.0,
            (true, false) => 0.3 * free[(i, j)],
            (false, _) => 0.0,
        };
        let (a, b) = (Matrix::from_fn(9, 9, entry), [3.0, -1.0, 0.5, 7.0, -20.0, 0.0, 1.0, 2.0, 11.0]);
        let mapped = data.values().dot_t(&a);
        let mapped = dataset(Matrix::from_fn(60, 9, |i, j| mapped[(i, j)] + b[j]));
        let (plain, fit) = (case.to_the_end().fit(&data, 2), case.to_the_end().fit(&mapped, 2));
        let mean = Matrix::from_vec(9, 1, plain.model.mean().to_vec()).unwrap();
        let mean: Vec<f64> = a.dot(&mean).into_vec().iter().zip(b).map(|(m, b)| m + b).collect();
        let covariance = a.dot(&plain.model.covariance()).dot_t(&a);
        assert_same_rows(&fit.model, &mean, &covariance, 1e-6);
    }

    pub(super) fn the_order_of_rows_does_not_matter(case: &Case) {
        let data = case.own_table(1);
        let other = dataset(Matrix::from_fn(60, 9, |i, j| data.values()[((7 * i + 3) % 60, j)]));
        let (plain, fit) = (case.settled().fit(&data, 2), case.settled().fit(&other, 2));
        assert_same_rows(&fit.model, plain.model.mean(), &plain.model.covariance(), 1e-7);
        assert_close("ℓ", &[fit.report.objective.value], &[plain.report.objective.value], 1e-9);
    }

    pub(super) fn the_order_of_views_does_not_matter(case: &Case) {
        let data = case.own_table(1);
        let from = |j: usize| (j + 4) % 9;
        let other = dataset(Matrix::from_fn(60, 9, |i, j| data.values()[(i, from(j))]));
        let plain = case.settled().fit(&data, 2);
        let fit = case.settled().method.fit(&other, &Spec::of_views(2, vec![5, 4])).unwrap();
        let mean: Vec<f64> = (0..9).map(|j| plain.model.mean()[from(j)]).collect();
        let c = plain.model.covariance();
        let covariance = Matrix::from_fn(9, 9, |i, j| c[(from(i), from(j))]);
        assert_same_rows(&fit.model, &mean, &covariance, 1e-7);
        assert_close("ℓ", &[fit.report.objective.value], &[plain.report.objective.value], 1e-9);
    }

    /// Any covariance within a view leaves nothing for the units to decide.
    pub(super) fn standardized_or_not_is_the_same_model(case: &Case) {
        let data = case.table(1);
        let spec = case.spec_for(&data, 2);
        let case = case.to_the_end();
        let one = case.method.fit(&data, &Spec { standardize: false, ..spec.clone() }).unwrap().model;
        let other = case.method.fit(&data, &Spec { standardize: true, ..spec }).unwrap().model;
        assert!(one.scale().is_none() && other.scale().is_some());
        assert_same_rows(&other, one.mean(), &one.covariance(), 1e-7);
    }

    pub(super) fn an_offset_of_a_million_costs_no_digits(case: &Case) {
        let data = case.own_table(1);
        // Rounded to 2⁻²⁰ so that the offset itself is exact.
        let unit = f64::from(1 << 20);
        let at = |offset: f64| {
            dataset(Matrix::from_fn(60, 9, |i, j| (data.values()[(i, j)] * unit).round() / unit + offset))
        };
        let (plain, fit) = (case.fit(&at(0.0), 2), case.fit(&at(1e6), 2));
        let mean: Vec<f64> = plain.model.mean().iter().map(|m| m + 1e6).collect();
        assert_same_rows(&fit.model, &mean, &plain.model.covariance(), 1e-6);
        assert_close("ℓ", &[fit.report.objective.value], &[plain.report.objective.value], 1e-6);
    }
}

/// Laws of mixtures beside those of `mixture.rs`.
mod of_mixtures {
    use super::*;

    fn table() -> Dataset {
        let whole = simulate::mixture(Shape { rows: 90, columns: 5, n_components: 1 }, 2, 8.0, 3).0;
        simulate::hide(&whole, 0.1, 4)
    }

    fn check(law: impl Fn(&MixtureEm, &Spec)) {
        for (name, method, spec) in mixture_cases() {
            let kept = catch_unwind(AssertUnwindSafe(|| law(&method, &spec)));
            assert!(kept.is_ok(), "broken by {name}");
        }
    }

    #[test]
    fn the_objective_is_that_of_the_model_and_never_falls() {
        check(|method, spec| {
            let fit = method.fit(&table(), spec).unwrap();
            let trace = &fit.report.trace;
            assert!(trace.windows(2).all(|p| p[1] >= p[0] - 1e-9 * (1.0 + p[0].abs())), "{trace:?}");
            // A ridge, where there is one, is a prior.
            if fit.report.objective.kind == ObjectiveKind::LogLikelihood {
                let value = fit.model.log_likelihood(&table()).unwrap();
                assert_close("ℓ", &[fit.report.objective.value], &[value], 1e-9);
            }
        });
    }

    #[test]
    fn log_density_is_the_dense_one() {
        check(|method, spec| {
            let model = method.fit(&table(), spec).unwrap().model;
            let data = table();
            let dense: Vec<Gaussian> = model.models().iter().map(Gaussian::of).collect();
            for (i, got) in model.log_density(&data).unwrap().into_iter().enumerate() {
                let terms = dense.iter().zip(model.weights());
                let p: f64 = terms.map(|(g, w)| w * g.log_density(data.row(i)).exp()).sum();
                assert_close("ln p", &[got], &[p.ln()], 1e-9);
            }
        });
    }

    #[test]
    fn threads_and_repetition_leave_no_trace_and_a_file_keeps_all() {
        check(|method, spec| {
            let data = table();
            let learn = |threads| {
                let fit = on_threads(threads, || method.fit(&data, spec)).unwrap();
                Learned::of_mixture(fit, &data, spec, method.into())
            };
            let (one, two, again) = (learn(1), learn(2), learn(2));
            assert_eq!(one, two);
            let mut bytes = Vec::new();
            model_file::write(&again, &mut bytes).unwrap();
            let read = model_file::read(bytes.as_slice()).unwrap();
            assert_eq!(read, one);
            let rows = simulate::hide(&data, 0.3, 2);
            let fill = |learned: &Learned| learned.fill(Rows::New).unwrap().fill(&rows).unwrap();
            assert_eq!(fill(&read), fill(&one));
        });
    }
}

/// Laws of independent sources beside those of `ica.rs`.
mod of_sources {
    use super::*;

    /// Four mixtures of two sources that are not normal, and a little of something else.
    fn table(gaps: Gaps) -> Dataset {
        let source = |i: usize, k: usize| {
            let x = ((i * 7919 + 13 * k) % 1009) as f64 / 1009.0;
            if k == 0 {
                (2.0 * x - 1.0).powi(3) * 5.0
            } else {
                ((i * (k + 3)) as f64 * 0.37).sin().powi(5) * 3.0
            }
        };
        let mixing = dense::normal(4, 2, 3);
        let noise = dense::normal(300, 4, 4);
        let cell = |i: usize, j: usize| {
            mixing[(j, 0)] * source(i, 0) + mixing[(j, 1)] * source(i, 1) + 0.1 * noise[(i, j)]
        };
        let whole = dataset(Matrix::from_fn(300, 4, cell));
        if gaps == Gaps::Exact { simulate::hide(&whole, 0.05, 5) } else { whole }
    }

    #[test]
    fn threads_and_repetition_leave_no_trace_and_a_file_keeps_all() {
        for (name, method, gaps) in source_cases() {
            let data = table(gaps);
            let learn = |threads| {
                let fit = on_threads(threads, || method.fit_observed(&data, &mut ())).unwrap();
                Learned::of_sources(fit, &data, &method)
            };
            let (one, two, again) = (learn(1), learn(2), learn(2));
            assert_eq!(one, two, "{name}");
            let mut bytes = Vec::new();
            model_file::write(&again, &mut bytes).unwrap();
            let read = model_file::read(bytes.as_slice()).unwrap();
            assert_eq!(read, one, "{name}");
            let scores = |learned: &Learned| learned.scores(&data, None).unwrap();
            assert_eq!(scores(&read), scores(&one), "{name}");
            assert_eq!(read.method.name, method.name());
        }
    }

    #[test]
    fn the_objective_never_falls_and_gaps_are_taken_or_refused() {
        for (name, method, gaps) in source_cases() {
            let fit = method.fit_observed(&table(gaps), &mut ()).unwrap();
            // FastICA climbs nothing: its trace is of what a step changed.
            if fit.objective().is_some() {
                let trace = &fit.trace;
                assert!(
                    trace.windows(2).all(|p| p[1] >= p[0] - 1e-9 * (1.0 + p[0].abs())),
                    "{name}: {trace:?}"
                );
            }
            let taken = method.fit_observed(&table(Gaps::Exact), &mut ()).is_ok();
            assert_eq!(taken, gaps == Gaps::Exact, "{name}");
        }
    }
}

/// Rows in time.
mod dynamic {
    use super::*;

    fn table() -> Dataset {
        let noise = dense::normal(60, 4, 7);
        let wave = |t: usize, j: usize| {
            (t as f64 / 5.0 + j as f64).sin() + (t as f64 / 12.0 * std::f64::consts::TAU).cos()
        };
        simulate::hide(
            &dataset(Matrix::from_fn(60, 4, |t, j| 5.0 + wave(t, j) + 0.3 * noise[(t, j)])),
            0.1,
            8,
        )
    }

    #[test]
    fn threads_and_repetition_leave_no_trace_and_a_file_keeps_all() {
        let data = table();
        for (name, method) in dynamic_cases() {
            let method = AnyMethod::from(method);
            let asked = Request {
                n_components: Some(Components::Number(1)),
                method: Some(method.clone()),
                ..Request::new(Family::Dfm)
            };
            let learn = |threads| on_threads(threads, || asked.learn(&data)).unwrap();
            let (one, two, again) = (learn(1), learn(2), learn(2));
            assert_eq!(one, two, "{name}");
            let mut bytes = Vec::new();
            model_file::write(&again, &mut bytes).unwrap();
            let read = model_file::read(bytes.as_slice()).unwrap();
            assert_eq!(read, one, "{name}");
            assert_eq!(read.scores(&data, None).unwrap(), one.scores(&data, None).unwrap(), "{name}");
            assert_eq!(read.method.name, method.name());
            let trace = one.ending().trace;
            assert!(trace.windows(2).all(|p| p[1] >= p[0] - 1e-9 * (1.0 + p[0].abs())), "{name}: {trace:?}");
        }
    }
}

fn dataset(values: Matrix) -> Dataset {
    Dataset::new(values).expect("a valid table")
}

/// Loadings, mean and noise: the fitted parameters themselves, in canonical form.
#[track_caller]
fn assert_same_model(got: &LinearGaussian, want: &LinearGaussian, tolerance: f64) {
    assert_close("mean", got.mean(), want.mean(), tolerance);
    assert_close("noise", &got.noise_variances(), &want.noise_variances(), tolerance);
    assert_close("loadings", got.loadings().as_slice(), want.loadings().as_slice(), tolerance);
}

/// The same model of other rows: `t → A t + b` applied to the parameters.
fn moved(model: &LinearGaussian, a: &Matrix, b: &[f64], noise: Noise) -> LinearGaussian {
    let mean = Matrix::from_vec(model.mean().len(), 1, model.mean().to_vec()).expect("one column");
    let mean = a.dot(&mean).into_vec().iter().zip(b).map(|(m, b)| m + b).collect();
    // Where columns were standardized, A only stretches and reorders them.
    let stretched = |scale: &[f64]| -> Vec<f64> {
        a.rows().map(|a| a.iter().zip(scale).map(|(a, s)| a.abs() * s).sum()).collect()
    };
    let moved = LinearGaussian::new(a.dot(model.loadings()), mean, noise)
        .and_then(|moved| moved.with_scale(model.scale().map(stretched)))
        .expect("valid parameters");
    if model.has_fixed_axes() { moved.with_fixed_axes() } else { moved }.canonical()
}

/// Bits of everything a fit returns.
fn bits(fit: &Fit) -> Vec<u64> {
    let model = &fit.model;
    [model.loadings().as_slice(), model.mean(), &model.noise_variances(), &fit.report.trace]
        .concat()
        .iter()
        .map(|v| v.to_bits())
        .collect()
}

pub(crate) fn on_threads<T: Send>(n: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().expect("a thread pool").install(work)
}

mod law {
    use super::*;

    pub(super) fn log_density_is_the_dense_gaussian(case: &Case) {
        let fit = case.fit(&case.own_table(1), 2);
        let rows = simulate::hide(&case.table(2), 0.4, 3);
        let dense = Gaussian::of(&fit.model);
        let want: Vec<f64> = (0..rows.n_rows()).map(|i| dense.log_density(rows.row(i))).collect();
        assert_close("ln p", &fit.model.log_density(&rows).unwrap(), &want, 1e-10);
    }

    pub(super) fn the_objective_never_falls(case: &Case) {
        for seed in 0..4 {
            for q in [0, 1, 2, 4] {
                let fit = case.fit(&case.own_table(seed), q);
                let trace = &fit.report.trace;
                assert!(trace.iter().all(|v| v.is_finite()), "{trace:?}");
                for pair in trace.windows(2).filter(|_| case.maximizes()) {
                    assert!(pair[1] >= pair[0] - 1e-9 * (1.0 + pair[0].abs()), "q = {q}: {pair:?}");
                }
            }
        }
    }

    pub(super) fn the_objective_is_that_of_the_model(case: &Case) {
        let data = case.own_table(1);
        let fit = case.fit(&data, 2);
        if let Some(draws) = &fit.draws {
            let of = |draw| Gaussian::of(draw).log_likelihood(&data);
            let mean = draws.models().iter().map(of).sum::<f64>() / draws.models().len() as f64;
            assert_eq!(fit.report.objective.kind, ObjectiveKind::AverageLogLikelihood);
            assert_close("ℓ", &[fit.report.objective.value], &[mean], 1e-10);
            return;
        }
        assert_eq!(fit.report.trace.last(), Some(&fit.report.objective.value));
        let dense = Gaussian::of(&fit.model).log_likelihood(&data);
        if case.is_flat() {
            assert_eq!(fit.report.objective.kind, ObjectiveKind::LogLikelihood);
            assert_close("ℓ", &[fit.report.objective.value], &[dense], 1e-10);
        } else {
            assert_eq!(fit.report.objective.kind, ObjectiveKind::LogPosterior);
        }
    }

    /// Of ℓ, of ℓ + ln p(W, σ²) with the weak prior of [M 1.5.6], or of ℓ + ln p(W | α) at the α found.
    pub(super) fn the_gradient_vanishes_at_the_limit(case: &Case) {
        if !case.maximizes() {
            return;
        }
        let data = case.own_table(1);
        let Fit { model, report, .. } = case.to_the_end().fit(&data, 2);
        let mut gradient = LatentMoments::new(&model, &data).unwrap().gradient();
        if case.prunes() {
            let (slopes, w) = (gradient.loadings.as_mut_slice(), model.loadings().as_slice());
            for (k, (g, w)) in slopes.iter_mut().zip(w).enumerate() {
                *g -= report.relevance[k % 2] * w;
            }
        } else if let Some(lambda) = case.pseudo_rows() {
            // −λ/2 (ln|C| + v tr C⁻¹): its slope in C is −λ/2 (P − v PP).
            let variances = data.observed_variances();
            let v = variances.iter().sum::<f64>() / 9.0;
            let p = model.precision();
            let pp = p.dot(&p);
            let slope = Matrix::from_fn(9, 9, |i, j| -lambda * (p[(i, j)] - v * pp[(i, j)]));
            let of_loadings = slope.dot(model.loadings());
            let slopes = gradient.loadings.as_mut_slice();
            slopes.iter_mut().zip(of_loadings.as_slice()).for_each(|(g, s)| *g += s);
            gradient.noise[0] += 0.5 * slope.trace();
        } else if !case.is_flat() {
            let (s2, variances) = (model.noise().variance(0), data.observed_variances());
            let b0 = 0.05 * variances.iter().sum::<f64>() / variances.len() as f64;
            let w = model.loadings().as_slice();
            for (g, w) in gradient.loadings.as_mut_slice().iter_mut().zip(w) {
                *g -= w / s2;
            }
            let squares: f64 = w.iter().map(|w| w * w).sum();
            gradient.noise[0] += (0.5 * squares / s2 - 0.5 * w.len() as f64 - 2.0 + b0 / s2) / s2;
        }
        let slopes = gradient.loadings.as_slice();
        assert_close("∂W", slopes, &vec![0.0; slopes.len()], 1e-6);
        assert_close("∂μ", &gradient.mean, &[0.0; 9], 1e-6);
        if case.is_isotropic() {
            assert_close("∂σ²", &[gradient.noise.iter().sum()], &[0.0], 1e-6);
        } else {
            assert_close("∂ψ", &gradient.noise, &[0.0; 9], 1e-6);
        }
    }

    /// Against the recommended case for complete tables: a fit that may miss cells and misses none is
    /// the complete fit.
    pub(super) fn all_methods_of_a_family_meet(case: &Case) {
        if !case.is_flat() || !case.maximizes() {
            return;
        }
        for seed in 1..4 {
            let data = case.table(seed);
            let spec = case.spec_for(&data, 2);
            let want = Method::recommended(&data, &spec).fit(&data, &spec).unwrap();
            let got = case.to_the_end().fit(&data, 2);
            assert_same_model(&got.model, &want.model, 1e-7);
            assert_close("ℓ", &[got.report.objective.value], &[want.report.objective.value], 1e-10);
            // And where it stops of its own accord it is within its own tolerance.
            let stopped = case.fit(&data, 2).report;
            let short = want.report.objective.value - stopped.objective.value;
            assert!(short < 1e-6 || !stopped.converged(), "{short:e} nats short");
        }
    }

    pub(super) fn one_component_less_than_columns_gives_the_sample_covariance(case: &Case) {
        if !case.is_isotropic() || !case.is_flat() || !case.maximizes() {
            return;
        }
        let (data, _) = simulate::rotated(50, &[4.0, 2.0, 1.0, 0.4], 1);
        let model = case.to_the_end().fit(&data, 3).model;
        let want = dense::moments(data.values());
        assert_close("C = S", model.covariance().as_slice(), want.covariance.as_slice(), 1e-8);
        assert_close("μ", model.mean(), &want.mean, 1e-8);
    }

    /// To the last digits that the order of summation leaves.
    pub(super) fn without_components_the_answer_is_exact(case: &Case) {
        if !case.maximizes() || case.pseudo_rows().is_some() {
            return;
        }
        let data = case.own_table(1);
        let model = case.to_the_end().fit(&data, 0).model;
        let (mean, variances) = (data.observed_means(), data.observed_variances());
        let want = if case.is_isotropic() {
            let counts = data.n_observed_by_column();
            let squares: f64 = variances.iter().zip(counts).map(|(v, n)| v * *n as f64).sum();
            let cells = data.n_observed() as f64;
            let s2 = if case.is_flat() || case.prunes() {
                squares / cells
            } else {
                (squares + 0.1 * variances.iter().sum::<f64>() / 9.0) / (cells + 4.0)
            };
            vec![s2; 9]
        } else {
            variances.to_vec()
        };
        assert_close("μ", model.mean(), mean, 1e-14);
        assert_close("ψ", &model.noise_variances(), &want, 1e-14);
        assert_eq!(model.n_components(), 0);
    }

    pub(super) fn turning_the_data_turns_ppca(case: &Case) {
        if !case.is_isotropic() || !case.maximizes() {
            return;
        }
        let data = case.table(1);
        let turn = dense::orthogonal(9, 4);
        let turned = dataset(data.values().dot_t(&turn));
        let (plain, fit) = (case.settled().fit(&data, 2), case.settled().fit(&turned, 2));
        let want = moved(&plain.model, &turn, &[0.0; 9], plain.model.noise().clone());
        assert_same_model(&fit.model, &want, 1e-9);
        assert_close("ℓ", &[fit.report.objective.value], &[plain.report.objective.value], 1e-9);
    }

    pub(super) fn shifting_and_stretching_the_data_shifts_and_stretches_the_model(case: &Case) {
        let data = case.own_table(1);
        // A mirrored table meets random numbers that are not.
        let a = if case.maximizes() { -2.5 } else { 2.5 };
        let b = [3.0, -1.0, 0.5, 7.0, -20.0, 0.0, 1.0, 2.0, 11.0];
        let other = dataset(Matrix::from_fn(60, 9, |i, j| a * data.values()[(i, j)] + b[j]));
        let (plain, fit) = (case.settled().fit(&data, 2), case.settled().fit(&other, 2));
        let noise = match plain.model.noise() {
            Noise::Isotropic(s2) => Noise::Isotropic(a * a * s2),
            Noise::Diagonal(psi) => Noise::Diagonal(psi.iter().map(|p| a * a * p).collect()),
        };
        assert_same_model(&fit.model, &moved(&plain.model, &Matrix::diagonal(&[a; 9]), &b, noise), 1e-9);
        let of = |fit: &Fit, data: &Dataset| fit.model.log_likelihood(data).unwrap();
        let want = of(&plain, &data) - data.n_observed() as f64 * a.abs().ln();
        assert_close("ℓ", &[of(&fit, &other)], &[want], 1e-9);
    }

    const UNITS: [f64; 9] = [1e-3, 2.0, 1.0, 1e3, 0.5, 7.0, 1e-4, 3.0, 10.0];

    /// Fits the table in its own and in other units; the second answer is mapped back.
    fn in_other_units(case: &Case, spec: &Spec) -> (LinearGaussian, LinearGaussian) {
        let data = case.own_table(1);
        let mut values = data.values().clone();
        values.scale_columns(&UNITS);
        let fit = |data: &Dataset| case.settled().method.fit(data, spec).unwrap().model;
        let (plain, other) = (fit(&data), fit(&dataset(values)));
        let back: Vec<f64> = UNITS.iter().map(|u| 1.0 / u).collect();
        let psi = other.noise_variances().iter().zip(&back).map(|(p, u)| p * u * u).collect();
        let other = moved(&other, &Matrix::diagonal(&back), &[0.0; 9], Noise::Diagonal(psi));
        (plain, other)
    }

    pub(super) fn factor_analysis_follows_column_units_and_ppca_does_not(case: &Case) {
        let (plain, other) = in_other_units(case, &case.spec_for(&case.table(1), 2));
        if case.is_isotropic() {
            let (a, b) = (plain.noise_variances(), other.noise_variances());
            assert!(a.iter().zip(&b).any(|(a, b)| (a / b).ln().abs() > 0.1), "{a:?} and {b:?}");
        } else {
            assert_same_model(&other, &plain, 1e-9);
        }
    }

    pub(super) fn standardized_ppca_follows_column_units(case: &Case) {
        let spec = Spec { standardize: true, ..case.spec_for(&case.table(1), 2) };
        let (plain, other) = in_other_units(case, &spec);
        assert_same_model(&other, &plain, 1e-9);
    }

    pub(super) fn the_order_of_rows_does_not_matter(case: &Case) {
        if !case.maximizes() {
            return;
        }
        let data = case.own_table(1);
        let other = dataset(Matrix::from_fn(60, 9, |i, j| data.values()[((7 * i + 3) % 60, j)]));
        let (plain, fit) = (case.settled().fit(&data, 2), case.settled().fit(&other, 2));
        assert_same_model(&fit.model, &plain.model, 1e-9);
        assert_close("ℓ", &[fit.report.objective.value], &[plain.report.objective.value], 1e-9);
    }

    pub(super) fn the_order_of_columns_does_not_matter(case: &Case) {
        if !case.maximizes() {
            return;
        }
        let data = case.own_table(1);
        let from = |j: usize| (4 * j + 2) % 9;
        let other = dataset(Matrix::from_fn(60, 9, |i, j| data.values()[(i, from(j))]));
        let (plain, fit) = (case.settled().fit(&data, 2), case.settled().fit(&other, 2));
        let permutation = Matrix::from_fn(9, 9, |i, j| f64::from(u8::from(from(i) == j)));
        let noise = match plain.model.noise() {
            Noise::Isotropic(s2) => Noise::Isotropic(*s2),
            Noise::Diagonal(psi) => Noise::Diagonal((0..9).map(|j| psi[from(j)]).collect()),
        };
        assert_same_model(&fit.model, &moved(&plain.model, &permutation, &[0.0; 9], noise), 1e-9);
        assert_close("ℓ", &[fit.report.objective.value], &[plain.report.objective.value], 1e-9);
    }

    pub(super) fn rows_of_only_gaps_change_nothing(case: &Case) {
        let data = case.own_table(1);
        // Before, among and after the others.
        let rows: Vec<Vec<f64>> = (0..84)
            .map(|i| if i % 7 < 2 { vec![f64::NAN; 9] } else { data.row(i / 7 * 5 + i % 7 - 2).to_vec() })
            .collect();
        let padded = dataset(Matrix::from_rows(&rows));
        let (plain, fit) = (case.fit(&data, 2), case.fit(&padded, 2));
        assert_same_model(&fit.model, &plain.model, 1e-12);
        assert_close("ℓ", &[fit.report.objective.value], &[plain.report.objective.value], 1e-12);
        assert_eq!(fit.model.log_density(&padded).unwrap()[0], 0.0);
    }

    pub(super) fn em_from_turned_loadings_ends_at_the_same_model(case: &Case) {
        let Method::Em(em) = &case.method else { return };
        let data = case.own_table(1);
        let noise = if case.is_isotropic() { Noise::Isotropic(0.7) } else { Noise::Diagonal(vec![0.7; 9]) };
        let start = LinearGaussian::new(dense::normal(9, 2, 5), vec![0.0; 9], noise).unwrap();
        let turned = start.rotated(&dense::orthogonal(2, 6));
        let fit = |start: &LinearGaussian| {
            let em = Em { init: Init::Given(Box::new(start.clone())), ..em.clone() };
            Case { method: Method::Em(em), ..*case }.to_the_end().fit(&data, 2)
        };
        let (plain, other) = (fit(&start), fit(&turned));
        assert_same_model(&other.model, &plain.model, 1e-9);
        // Without extrapolation every step on the way agrees, too.
        if em.acceleration == Acceleration::Never {
            assert_close("trace", &other.report.trace, &plain.report.trace, 1e-9);
        }
        // And one step keeps the turn itself: W R goes to W_new R.
        let step = |m: &LinearGaussian| LatentMoments::new(m, &data).unwrap().maximize(false).unwrap();
        let want = step(&start).rotated(&dense::orthogonal(2, 6));
        assert_same_model(&step(&turned), &want, 1e-9);
    }

    pub(super) fn scores_at_the_optimum_have_unit_second_moment(case: &Case) {
        if !case.is_flat() || !case.maximizes() {
            return;
        }
        let data = case.table(1);
        let model = case.to_the_end().fit(&data, 2).model;
        let posterior = model.posterior(&data).unwrap();
        let outer = posterior.mean.t_dot(&posterior.mean);
        let v = posterior.covariance(0);
        let q = model.n_components();
        let second = Matrix::from_fn(q, q, |i, j| outer[(i, j)] / 60.0 + v[(i, j)]);
        assert_close("⟨xxᵀ⟩", second.as_slice(), Matrix::identity(q).as_slice(), 1e-9);
        let distances = model.outlyingness(&data).unwrap();
        let mean = distances.iter().map(|o| o.mahalanobis).sum::<f64>() / 60.0;
        assert_close("mean Δ", &[mean], &[9.0], 1e-9);
    }

    pub(super) fn gaps_are_filled_by_the_dense_conditional(case: &Case) {
        let model = case.fit(&case.own_table(1), 2).model;
        let mut rows = simulate::hide(&case.table(2), 0.5, 3).values().clone();
        rows.row_mut(7).fill(f64::NAN);
        let rows = dataset(rows);
        let dense = Gaussian::of(&model);
        let filled = model.impute(&rows).unwrap();
        let mut cells = filled.cells().iter();
        for i in 0..rows.n_rows() {
            let want = dense.gaps(rows.row(i));
            for (k, &j) in want.columns.iter().enumerate() {
                let cell = cells.next().expect("one cell per gap");
                assert_eq!((cell.row, cell.column), (i, j));
                assert_close("mean", &[cell.mean, filled.values()[(i, j)]], &[want.mean[k]; 2], 1e-10);
                assert_close("variance", &[cell.sd * cell.sd], &[want.covariance[(k, k)]], 1e-10);
            }
            let given = model.condition(&dense::observed(rows.row(i)));
            let got = given.gap_covariance(true);
            assert_close("covariance", got.as_slice(), want.covariance.as_slice(), 1e-10);
            for j in dense::observed(rows.row(i)) {
                assert_eq!(filled.values()[(i, j)].to_bits(), rows.row(i)[j].to_bits());
            }
        }
        assert!(cells.next().is_none());
    }

    pub(super) fn draws_of_gaps_have_the_moments_of_the_conditional(case: &Case) {
        let model = case.fit(&case.own_table(1), 2).model;
        let mut row = case.table(2).row(0).to_vec();
        for j in [1, 2, 5] {
            row[j] = f64::NAN;
        }
        let want = Gaussian::of(&model).gaps(&row);
        let draws = model.multiple_impute(&dataset(Matrix::from_rows(&[&row])), 4000, 11).unwrap();
        let drawn = Matrix::from_fn(4000, 3, |k, m| draws[k][(0, want.columns[m])]);
        assert_moments(&drawn, &want.mean, &want.covariance);
        assert!(draws.iter().all(|t| t[(0, 0)] == row[0]), "observed cells stay");
    }

    /// Mean and covariance of draws within five of their standard errors.
    fn assert_moments(drawn: &Matrix, mean: &[f64], covariance: &Matrix) {
        let (n, got) = (drawn.n_rows() as f64, dense::moments(drawn));
        for a in 0..mean.len() {
            let se = (covariance[(a, a)] / n).sqrt();
            assert!((got.mean[a] - mean[a]).abs() < 5.0 * se, "mean {a}");
            for b in 0..mean.len() {
                let c = covariance[(a, b)];
                let se = ((covariance[(a, a)] * covariance[(b, b)] + c * c) / n).sqrt();
                assert!((got.covariance[(a, b)] - c).abs() < 5.0 * se, "covariance {a}, {b}");
            }
        }
    }

    pub(super) fn a_hidden_cell_is_predicted_without_its_value(case: &Case) {
        let model = case.fit(&case.own_table(1), 2).model;
        let data = case.own_table(2);
        for i in 0..10 {
            for j in dense::observed(data.row(i)) {
                let mut row = data.row(i).to_vec();
                row[j] = f64::NAN;
                let others = dense::observed(&row);
                let hidden = model.impute(&dataset(Matrix::from_rows(&[&row]))).unwrap();
                let filled = hidden.cells().iter().find(|c| c.column == j).unwrap();
                let given = model.given(&others);
                let want = given.complete(&row);
                let k = (0..j).filter(|j| !others.contains(j)).count();
                let spread = want.variance[k].sqrt();
                assert!((filled.mean - want.mean[k]).abs() < 1e-11 * spread, "{filled:?} {want:?}");
                assert!((filled.sd - spread).abs() < 1e-12 * spread, "{filled:?} {want:?}");
                for value in [data.row(i)[j], 1e9, f64::INFINITY] {
                    row[j] = value;
                    let got = given.complete(&row);
                    assert_eq!(got.mean[k].to_bits(), want.mean[k].to_bits());
                    assert_eq!(got.variance[k].to_bits(), want.variance[k].to_bits());
                }
            }
        }
    }

    pub(super) fn any_sharding_gives_the_same_step(case: &Case) {
        let data = case.own_table(1);
        let model = case.fit(&case.own_table(2), 2).model;
        let whole = LatentMoments::new(&model, &data).unwrap();
        for cuts in [vec![0, 1, 60], vec![0, 13, 14, 40, 60], (0..=60).collect()] {
            let shards: Vec<Matrix> = cuts
                .windows(2)
                .map(|c| Matrix::from_rows(&(c[0]..c[1]).map(|i| data.row(i)).collect::<Vec<_>>()))
                .collect();
            let mut merged: Option<LatentMoments> = None;
            for shard in shards.iter().rev() {
                let part = LatentMoments::new(&model, &dataset(shard.clone())).unwrap();
                match &mut merged {
                    None => merged = Some(part),
                    Some(sum) => sum.merge(&part).unwrap(),
                }
            }
            let merged = merged.unwrap();
            assert_close("ℓ", &[merged.log_likelihood()], &[whole.log_likelihood()], 1e-10);
            for expand in [false, true] {
                let (got, want) = (merged.maximize(expand).unwrap(), whole.maximize(expand).unwrap());
                assert_same_model(&got, &want, 1e-10);
            }
            if data.is_complete() {
                let mut sum = CentralMoments::new(9);
                for shard in shards.iter().rev() {
                    let mut part = CentralMoments::new(9);
                    part.add(shard.as_slice());
                    sum.merge(&part);
                }
                let want = dense::moments(data.values());
                assert_close("m", sum.mean(), &want.mean, 1e-10);
                assert_close("S", sum.covariance().as_slice(), want.covariance.as_slice(), 1e-10);
            }
        }
    }

    pub(super) fn an_offset_of_a_million_costs_no_digits(case: &Case) {
        // Where walks that differ in rounding spread, their ends are compared.
        let (case, data) = (case.settled(), case.own_table(1));
        // Rounded to 2⁻²⁰ so that the offset itself is exact.
        let unit = f64::from(1 << 20);
        let at = |offset: f64| {
            dataset(Matrix::from_fn(60, 9, |i, j| (data.values()[(i, j)] * unit).round() / unit + offset))
        };
        let (plain, fit) = (case.fit(&at(0.0), 2), case.fit(&at(1e6), 2));
        assert_close("noise", &fit.model.noise_variances(), &plain.model.noise_variances(), 1e-6);
        assert_close("W", fit.model.loadings().as_slice(), plain.model.loadings().as_slice(), 1e-6);
        let mean: Vec<f64> = fit.model.mean().iter().map(|m| m - 1e6).collect();
        assert_close("μ", &mean, plain.model.mean(), 1e-6);
        assert_close("ℓ", &[fit.report.objective.value], &[plain.report.objective.value], 1e-6);
    }

    pub(super) fn tiny_noise_is_found_or_held_at_a_stated_floor(case: &Case) {
        let w = dense::normal(9, 2, 1);
        let truth = LinearGaussian::new(w, vec![1.0; 9], Noise::Isotropic(1e-10)).unwrap();
        let data = dataset(truth.sample(60, &mut ChaCha8Rng::seed_from_u64(2)));
        let fit = case.to_the_end().fit(&data, 2);
        assert!(fit.model.log_likelihood(&data).unwrap().is_finite());
        // The case that squares nothing is the reference: an eigenvalue is a squared singular value.
        let reference = Spectral { solver: Solver::Svd, ..Spectral::default() };
        let want = reference.fit(&data, &Spec::ppca(case.spec_for(&data, 2).n_components)).unwrap();
        let (got, s2) = (fit.model.noise().variance(0), want.model.noise().variance(0));
        match case.tiny_noise {
            TinyNoise::Exact => {
                assert!((got / s2 - 1.0).abs() < 1e-6, "σ² = {got}, want {s2}");
                assert_same_model(&fit.model, &want.model, 1e-6);
                let by_rows = fit.model.log_likelihood(&data).unwrap();
                assert_close("ℓ", &[by_rows], &[want.report.objective.value], 1e-6);
            }
            TinyNoise::Squared => assert!((got / s2 - 1.0).abs() < 1e-3, "σ² = {got}, want {s2}"),
            TinyNoise::Stable => {
                assert!(fit.model.noise_variances().iter().all(|p| *p >= 0.5 * s2));
                if !case.maximizes() {
                    return;
                }
                let trace = &fit.report.trace;
                assert!(trace.windows(2).all(|p| p[1] >= p[0] - 1e-9 * (1.0 + p[0].abs())));
                let told = |w: &Warning| matches!(w, Warning::NoiseAtFloor { .. });
                assert!(case.is_isotropic() || fit.report.warnings.iter().any(told), "the floor is named");
            }
        }
    }

    pub(super) fn the_likelihood_never_falls_with_components(case: &Case) {
        if !case.is_flat() || !case.maximizes() {
            return;
        }
        let data = case.own_table(1);
        let values: Vec<f64> =
            (0..=4).map(|q| case.to_the_end().fit(&data, q).report.objective.value).collect();
        assert!(values.windows(2).all(|v| v[1] >= v[0] - 1e-9 * (1.0 + v[0].abs())), "{values:?}");
    }

    pub(super) fn factor_analysis_is_never_worse_than_ppca(case: &Case) {
        if case.is_isotropic() || !case.maximizes() {
            return;
        }
        for q in 0..=3 {
            let data = case.own_table(1);
            let factors = case.to_the_end().fit(&data, q).report.objective.value;
            let ppca = Em { tolerance: 1e-10, ..Em::default() }.fit(&data, &Spec::ppca(q)).unwrap();
            assert!(factors >= ppca.report.objective.value - 1e-8, "q = {q}");
        }
    }

    /// Inside the bounds; at the floor the slope points outwards.
    pub(super) fn a_factor_optimum_meets_the_variances(case: &Case) {
        if case.is_isotropic() || !case.maximizes() {
            return;
        }
        for seed in 1..4 {
            let data = case.table(seed);
            let model = case.to_the_end().fit(&data, 2).model;
            let (c, psi) = (model.covariance(), model.noise_variances());
            let s = dense::moments(data.values()).covariance;
            for j in 0..9 {
                let at_floor = psi[j] <= 0.005 * s[(j, j)] * (1.0 + 1e-9);
                let slope = (c[(j, j)] - s[(j, j)]) / psi[j];
                assert!(slope > -1e-7 && (at_floor || slope < 1e-7), "column {j}: slope {slope}");
            }
        }
    }

    /// t ~ N(μ, C), then x ~ p(x | t), then t' ~ p(t' | x): t' ~ N(μ, C).
    pub(super) fn a_probabilistic_round_trip_keeps_the_distribution(case: &Case) {
        let model = case.fit(&case.own_table(1), 2).model;
        let n = 4000;
        let rows = dataset(model.sample(n, &mut ChaCha8Rng::seed_from_u64(3)));
        let posterior = model.posterior(&rows).unwrap();
        let spread = dense::cholesky(posterior.covariance(0));
        let q = model.n_components();
        let e = dense::normal(n, q, 4).dot_t(&spread);
        let x = Matrix::from_fn(n, q, |i, k| posterior.mean[(i, k)] + e[(i, k)]);
        assert_moments(&x, &vec![0.0; q], &Matrix::identity(q));
        let (mut back, noise) = (model.decode(&x).unwrap(), dense::normal(n, 9, 5));
        for i in 0..n {
            for j in 0..9 {
                back[(i, j)] += model.noise().variance(j).sqrt() * noise[(i, j)];
            }
        }
        assert_moments(&back, model.mean(), &Gaussian::of(&model).covariance);
    }

    pub(super) fn threads_and_repetition_leave_no_trace(case: &Case) {
        // Large enough to be cut into several pieces.
        let shape = Shape { rows: 9000, columns: 20, n_components: 3 };
        let (whole, _) =
            if case.is_isotropic() { simulate::ppca(shape, 1) } else { simulate::factor_analysis(shape, 1) };
        let data = if case.gaps == Gaps::Exact { simulate::hide(&whole, 0.01, 2) } else { whole };
        // Thirty steps walk through everything that is cut into pieces.
        let method = match case.method.clone() {
            Method::Em(em) => Method::Em(Em { max_iterations: 30, ..em }),
            other => other,
        };
        let fit = |threads| {
            let data = dataset(data.values().clone());
            on_threads(threads, || {
                let fit = method.fit(&data, &case.spec_for(&data, 3)).unwrap();
                let drawn = fit.model.multiple_impute(&data, 1, 9).unwrap();
                let answers = [fit.model.log_density(&data).unwrap(), drawn[0].as_slice().to_vec()].concat();
                (bits(&fit), answers.iter().map(|v| v.to_bits()).collect::<Vec<_>>())
            })
        };
        let (one, two, again) = (fit(1), fit(2), fit(2));
        assert!(one == two, "one thread and two");
        assert!(two == again, "run to run");
    }

    pub(super) fn the_same_seed_gives_the_same_numbers(case: &Case) {
        let data = case.own_table(1);
        let seeded = |seed| match case.method.clone() {
            Method::Em(em) => Method::Em(Em { seed, init: Init::Random, restarts: 1, ..em }),
            Method::Spectral(s) => Method::Spectral(Spectral { seed, ..s }),
            Method::Newton(n) => Method::Newton(Newton { seed, ..n }),
            Method::Gibbs(g) => Method::Gibbs(Gibbs { seed, ..g }),
            other => other,
        };
        let fit = |seed| seeded(seed).fit(&data, &case.spec_for(&data, 2)).unwrap();
        let (a, b, other) = (fit(1), fit(1), fit(2));
        assert_eq!(bits(&a), bits(&b));
        // Another seed is another walk to the same place, or other draws from the same place.
        let tolerance = if case.maximizes() { 1e-6 } else { 0.2 };
        assert_close("ℓ", &[other.report.objective.value], &[a.report.objective.value], tolerance);
        let draw = |seed| a.model.multiple_impute(&simulate::hide(&data, 0.3, 1), 2, seed).unwrap();
        assert_eq!(draw(5), draw(5));
        assert!(draw(5)[0] != draw(6)[0] && draw(5)[0] != draw(5)[1]);
    }

    pub(super) fn reconstruction_is_transform_then_decode(case: &Case) {
        let data = case.own_table(1);
        let model = case.fit(&data, 2).model;
        let scores = model.transform(&data, Coordinates::Posterior).unwrap();
        let shrunk = model.reconstruct(&data, Reconstruction::PosteriorMean).unwrap();
        assert_close("μ + W x̂", model.decode(&scores).unwrap().as_slice(), shrunk.as_slice(), 1e-12);
        // The orthogonal reconstruction is a projection: a second one changes nothing, and what is
        // left is at right angles to the axes, in the scale of the fit.
        let once = model.reconstruct(&data, Reconstruction::Orthogonal).unwrap();
        let twice = model.reconstruct(&dataset(once.clone()), Reconstruction::Orthogonal).unwrap();
        assert_close("twice", twice.as_slice(), once.as_slice(), 1e-10);
        let whole = model.impute(&data).unwrap();
        let unit = |j: usize| model.scale().map_or(1.0, |scale| scale[j]);
        let left = Matrix::from_fn(60, 9, |i, j| (whole.values()[(i, j)] - once[(i, j)]) / unit(j));
        let residual = left.dot_t(&model.components()).into_vec();
        assert_close("residual", &residual, &vec![0.0; residual.len()], 1e-10);
        // Bartlett scores decode to the least-squares fit, which for isotropic noise and complete
        // rows is that projection.
        if case.is_isotropic() && data.is_complete() {
            let bartlett = model.transform(&data, Coordinates::Bartlett).unwrap();
            assert_close("least squares", model.decode(&bartlett).unwrap().as_slice(), once.as_slice(), 1e-9);
        }
    }

    pub(super) fn save_load_same_answer(case: &Case) {
        let data = case.own_table(1);
        let spec = case.spec_for(&data, 2);
        let fit = case.fit(&data, 2);
        let rows = simulate::hide(&data, 0.3, 2);
        let answers = (fit.model.log_density(&rows).unwrap(), fit.model.impute(&rows).unwrap());
        let learned = Learned::of_fit(fit, &data, &spec, &case.method);
        let mut bytes = Vec::new();
        model_file::write(&learned, &mut bytes).unwrap();
        let loaded = model_file::read(bytes.as_slice()).unwrap();
        assert_eq!(loaded, learned);
        let linear = loaded.linear().unwrap();
        let model = &linear.model;
        assert_eq!((model.log_density(&rows).unwrap(), model.impute(&rows).unwrap()), answers);
        // What is kept of the request is enough to fit again.
        let again = loaded.method.to_method().unwrap().fit(&data, &linear.spec).unwrap();
        assert_eq!(&again.model, model);
    }

    pub(super) fn answers_are_the_dense_ones_in_the_scale_of_the_fit(case: &Case) {
        for (data, standardize) in crate::scale::tables(&case.table(3), case.gaps == Gaps::Exact) {
            let spec = Spec { standardize, ..case.spec_for(&data, 2) };
            let fit = case.method.fit(&data, &spec).expect("a well-posed table");
            crate::scale::check(&fit.model, &data, standardize);
            // A file keeps the scale.
            let learned = Learned::of_fit(fit, &data, &spec, &case.method);
            let mut bytes = Vec::new();
            model_file::write(&learned, &mut bytes).unwrap();
            assert_eq!(model_file::read(bytes.as_slice()).unwrap(), learned);
        }
    }

    pub(super) fn a_table_standardized_by_hand_gives_the_same_answers(case: &Case) {
        if !case.maximizes() {
            return; // Draws meet other random numbers after rounding.
        }
        let case = case.settled();
        for (data, _) in crate::scale::tables(&case.table(3), case.gaps == Gaps::Exact).iter().step_by(2) {
            let spec = case.spec_for(data, 2);
            let by_hand = crate::scale::standardized(data);
            let one = case.method.fit(data, &Spec { standardize: true, ..spec.clone() }).unwrap().model;
            let other = case.method.fit(&by_hand, &Spec { standardize: false, ..spec }).unwrap().model;
            crate::scale::check_same(&one, data, &other, &by_hand, 1e-6);
        }
    }
}

#[test]
fn a_tolerance_of_zero_makes_as_many_steps_as_are_allowed() {
    const ALLOWED: usize = 2000;
    let (whole, _) = simulate::ppca(Shape { rows: 25, columns: 5, n_components: 1 }, 11);
    for case in cases().iter().chain(&variational_cases()).chain(&tailed_cases()).chain(&sparse_cases()) {
        let mut method = case.method.clone();
        if !method.options().contains_key("tolerance") {
            continue;
        }
        method.set("tolerance", "0").unwrap();
        method.set("max_iterations", &ALLOWED.to_string()).unwrap();
        let data = if case.gaps == Gaps::Exact { simulate::hide(&whole, 0.1, 12) } else { whole.clone() };
        let mut made = 0;
        let mut count = |step: &Step| {
            made = step.iteration;
            ControlFlow::Continue(())
        };
        let fit = method.fit_observed(&data, &case.spec_for(&data, 1), &mut count).unwrap();
        match case.method {
            // They end where no step changes anything any more.
            Method::Newton(_) | Method::ConditionalMaximization(_) if made < ALLOWED => {
                assert!(fit.report.converged(), "{}: {made}", case.name);
            }
            _ => {
                assert_eq!(made, ALLOWED, "{}", case.name);
                assert_eq!(fit.report.termination, Termination::IterationLimit, "{}", case.name);
            }
        }
        for warning in &fit.report.warnings {
            assert!(!warning.to_string().contains("inf"), "{}: {warning}", case.name);
        }
    }
}

mod functional {
    use super::*;

    #[test]
    fn threads_and_repetition_leave_no_trace_and_a_file_keeps_all() {
        let (long, truth) = simulated(40, 5, 3);
        let times = [0.0, 0.1, 0.4, 0.5, 0.7, 1.0];
        let drawn = truth.sample(&times, 40, &mut ChaCha8Rng::seed_from_u64(1)).unwrap();
        let names = times.iter().map(f64::to_string).collect();
        let gappy = simulate::hide(&Dataset::new(drawn).unwrap(), 0.2, 2);
        let wide = Dataset::with_names(gappy.into_values(), names).unwrap();
        for (name, method) in functional_cases() {
            for data in [&long, &wide] {
                let asked = Request {
                    n_components: Some(Components::Number(2)),
                    method: Some(AnyMethod::from(method.clone())),
                    ..Request::new(Family::Fpca)
                };
                let learn = |threads| on_threads(threads, || asked.learn(data)).unwrap();
                let (one, two) = (learn(1), learn(2));
                assert_eq!(one, two, "{name}");
                let mut bytes = Vec::new();
                model_file::write(&two, &mut bytes).unwrap();
                let read = model_file::read(bytes.as_slice()).unwrap();
                assert_eq!(read, one, "{name}");
                assert_eq!(read.scores(data, None).unwrap(), one.scores(data, None).unwrap(), "{name}");
                assert_eq!(read.row_scores(data).unwrap(), one.row_scores(data).unwrap(), "{name}");
                let trace = one.ending().trace;
                assert!(
                    trace.windows(2).all(|p| p[1] >= p[0] - 1e-9 * (1.0 + p[0].abs())),
                    "{name}: {trace:?}"
                );
            }
        }
    }
}
