//! Does every family of the table do what the table says: its name, its methods, what it refuses, what it tells who
//! watches, and what a model of it answers?

use crate::model_file::bytes;
use covary::data::{Shape, simulate};
use covary::family::{AnyMethod, Arrangement, Choice, Classes, Components, Family, Kind, Request, View};
use covary::infer::{Step, Termination};
use covary::io::model_file;
use covary::learn::Watch;
use covary::learned::{Checked, Learned, RowScores, Rows, Trained};
use covary::model::{ColumnMap, Rotation};
use covary::{Argument, Coordinates, Dataset, Error, Estimator, Matrix, Method, Spec};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::ops::ControlFlow;
use std::sync::Mutex;

/// 60 × 6 with two clear components and a column that never varies, as far as it goes with gaps.
fn table(gaps: bool) -> Dataset {
    let whole = simulate::ppca(Shape { rows: 60, columns: 6, n_components: 2 }, 1).0;
    let data = if gaps { simulate::hide(&whole, 0.1, 2) } else { whole };
    let names = ["a", "b", "c", "always", "d", "e", "f"].map(str::to_owned).to_vec();
    let place = |j: usize| if j > 3 { j - 1 } else { j };
    let cell = |i: usize, j: usize| if j == 3 { 4.5 } else { data.row(i)[place(j)] };
    Dataset::with_names(Matrix::from_fn(60, 7, cell), names).expect("a valid table")
}

/// Two kinds of rows, far apart.
fn two_groups(gaps: bool) -> Dataset {
    let whole = simulate::mixture(Shape { rows: 80, columns: 4, n_components: 1 }, 2, 10.0, 3).0;
    if gaps { simulate::hide(&whole, 0.1, 4) } else { whole }
}

fn two_views() -> Vec<View> {
    let view = |name: &str, columns: &[&str]| View {
        name: name.to_owned(),
        columns: columns.iter().map(|&c| c.to_owned()).collect(),
    };
    // Not in the order of the table, and with the constant.
    vec![view("left", &["a", "d", "b"]), view("right", &["f", "e", "always", "c"])]
}

fn two_classes(n_rows: usize) -> Classes {
    Classes {
        target: "side".to_owned(),
        names: ["one", "other"].map(str::to_owned).to_vec(),
        of_rows: (0..n_rows).map(|i| Some(i % 2)).collect(),
        priors: None,
    }
}

/// The family with what it cannot do without.
fn request(family: Family) -> Request {
    let views = if family.has_views() { two_views() } else { Vec::new() };
    Request { views, ..Request::new(family) }
}

/// A request and a table for it.
struct Asked {
    name: String,
    request: Request,
    table: Dataset,
}

fn table_for(family: Family, gaps: bool) -> Dataset {
    if family.kind() == Kind::Mixture { two_groups(gaps) } else { table(gaps) }
}

/// Every family as it is by default, by each of its methods, and with a model for each class.
fn every_request() -> Vec<Asked> {
    let mut every = Vec::new();
    let mut push = |name: String, request: Request, gaps: bool| {
        let table = table_for(request.family, gaps);
        every.push(Asked { name, request, table });
    };
    for &family in Family::ALL {
        // Of the methods of one table only those to independent components without noise refuse gaps by default.
        push(family.to_string(), request(family), family != Family::Ica);
        for &method in family.methods() {
            let mut by = Request { inference: Some(method.to_owned()), ..request(family) };
            if method == "gibbs" {
                let few = [("chains", "2"), ("draws", "10"), ("warm_up", "10"), ("thin", "1")];
                by.options = few.map(|(option, value)| (option.to_owned(), value.to_owned())).to_vec();
                by.n_components = Some(Components::Number(2));
            }
            push(format!("{family} by {method}"), by, takes_gaps(method));
        }
        if family.has_classes() {
            let by_class = Request { classes: Some(two_classes(60)), ..request(family) };
            push(format!("{family} by class"), by_class, true);
        }
    }
    every
}

fn takes_gaps(method: &str) -> bool {
    let refuse = ["spectral", "newton", "cm", "fixed-point", "bach-jordan", "fastica", "maximum-likelihood"];
    !refuse.contains(&method)
}

#[test]
fn names_come_back_and_no_two_are_the_same() {
    for (k, family) in Family::ALL.iter().enumerate() {
        assert_eq!(family.name().parse(), Ok(*family));
        assert_eq!(family.to_string(), family.name());
        assert!(Family::ALL[..k].iter().all(|other| other.name() != family.name()), "{family}");
        assert!(!family.words().is_empty() && family.summary().ends_with('.'), "{family}");
    }
    assert_eq!(
        Family::names(|_| true),
        "pca, ppca, tppca, spca, fa, bpca, bspca, gaussian, pcca, gfa, mppca, mfa, gmm, ica, dfm or fpca"
    );
    let unknown = "PCA".parse::<Family>().unwrap_err();
    assert!(
        matches!(&unknown, Error::NoSuchFamily { name, known } if name == "PCA" && known.contains("ppca"))
    );
}

#[test]
fn every_method_exists_and_leads_to_some_family() {
    for name in AnyMethod::names() {
        let method = AnyMethod::from_name(name).expect("a name is a method");
        assert_eq!(method.name(), name);
        let families = Family::ALL.iter().filter(|family| family.methods().contains(&name));
        assert!(families.count() > 0, "{name} leads to no family");
    }
    for &family in Family::ALL {
        assert!(!family.methods().is_empty(), "{family}");
        for name in family.methods() {
            let method = AnyMethod::from_name(name).unwrap_or_else(|| panic!("{family}: {name}"));
            let kind = match method {
                AnyMethod::Linear(_) => Kind::Linear,
                AnyMethod::Mixture(_) => Kind::Mixture,
                AnyMethod::Sources(_) => Kind::Sources,
                AnyMethod::Dynamic(_) => Kind::Dynamic,
                AnyMethod::Functional(_) => Kind::Functional,
            };
            assert_eq!(kind, family.kind(), "{family} by {name}");
        }
        // The default is one of them, whatever the table.
        for gaps in [false, true] {
            let (request, table) = (request(family), table_for(family, gaps));
            let data = request.column_map(&table).unwrap();
            let method = request.method(&data.dataset(&table).unwrap()).unwrap();
            assert!(family.methods().contains(&method.name()), "{family}: {}", method.name());
        }
        // No other is taken.
        for name in AnyMethod::names().iter().filter(|name| !family.methods().contains(name)) {
            let other = Request { inference: Some((*name).to_owned()), ..request(family) };
            assert!(matches!(other.learn(&table_for(family, false)), Err(Error::WrongMethod { .. })));
        }
        let unknown = Request { inference: Some("magic".to_owned()), ..request(family) };
        assert!(matches!(unknown.learn(&table_for(family, false)), Err(Error::NoSuchMethod { .. })));
    }
}

#[test]
fn the_family_of_a_fit_follows_from_its_method_and_noise() {
    let data = simulate::ppca(Shape { rows: 40, columns: 5, n_components: 1 }, 1).0;
    for (method, spec, family) in [
        ("spectral", Spec::ppca(1), Family::Ppca),
        ("em", Spec::factor_analysis(1), Family::Fa),
        ("mean-field", Spec::ppca(1), Family::Ppca),
        ("student-t", Spec::ppca(1), Family::Tppca),
        ("sparse-em", Spec::factor_analysis(1), Family::Spca),
        ("spike-slab", Spec::ppca(1), Family::Bspca),
        ("full-covariance", Spec::ppca(4), Family::Gaussian),
    ] {
        let method = Method::from_name(method).unwrap();
        let learned = Learned::of_fit(method.fit(&data, &spec).unwrap(), &data, &spec, &method);
        assert_eq!(learned.family, family);
        assert_eq!(model_file::read(bytes(&learned).as_slice()).unwrap(), learned, "{family}");
    }
}

/// The variant says what the accessors say.
#[track_caller]
fn check_kind(learned: &Learned, kind: Kind) {
    let (linear, mixture, sources) = (learned.linear(), learned.mixture(), learned.sources());
    match kind {
        Kind::Linear => {
            assert!(linear.is_ok());
            assert_eq!(mixture.unwrap_err(), Error::NotAMixture { what: "one model" });
            assert_eq!(sources.unwrap_err(), Error::NoSources { what: "one linear-Gaussian model" });
        }
        Kind::Mixture => {
            let classes = mixture.unwrap().classes.is_some();
            let what = if classes { "classes with a model each" } else { "a mixture" };
            assert_eq!(linear.unwrap_err(), Error::NotOneModel { what });
            assert_eq!(sources.unwrap_err(), Error::NoSources { what });
        }
        Kind::Sources => {
            assert!(sources.is_ok());
            assert!(matches!(linear.unwrap_err(), Error::NoDensity { .. }));
            assert_eq!(mixture.unwrap_err(), Error::NotAMixture { what: "independent components" });
        }
        Kind::Dynamic => {
            let what = "a dynamic factor model";
            assert!(matches!(linear.unwrap_err(), Error::Unsupported { method, .. } if method == what));
            assert_eq!(mixture.unwrap_err(), Error::NotAMixture { what });
            assert_eq!(sources.unwrap_err(), Error::NoSources { what });
        }
        Kind::Functional => {
            let what = "a functional PCA";
            assert!(matches!(linear.unwrap_err(), Error::Unsupported { method, .. } if method == what));
            assert_eq!(mixture.unwrap_err(), Error::NotAMixture { what });
            assert_eq!(sources.unwrap_err(), Error::NoSources { what });
        }
    }
    let refused = learned.functional().err();
    assert_eq!(refused.is_some(), kind != Kind::Functional);
    assert!(refused.is_none_or(|e| matches!(e, Error::NotCurves { .. })));
    let refused = learned.dynamic().err();
    assert_eq!(refused.is_some(), kind != Kind::Dynamic);
    assert!(refused.is_none_or(|e| matches!(e, Error::NotInTime { .. })));
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|v| v.to_bits()).collect()
}

fn finite(values: &[f64]) -> bool {
    values.iter().all(|v| v.is_finite())
}

/// Gaps are filled, with what is known of them, and nothing else is touched.
#[track_caller]
fn check_filled(learned: &Learned, data: &Dataset) {
    for rows in [Rows::New, Rows::Training] {
        let fill = learned.fill(rows).unwrap();
        let filled = fill.fill(data).unwrap();
        assert_eq!(filled.cells(), fill.cells(data).unwrap());
        assert_eq!(filled.cells().len(), data.n_gaps());
        for cell in filled.cells() {
            assert!(data.row(cell.row)[cell.column].is_nan());
            assert!(cell.mean.is_finite() && cell.sd > 0.0 && cell.sd.is_finite(), "{cell:?}");
            assert_eq!(filled.values()[(cell.row, cell.column)].to_bits(), cell.mean.to_bits());
            let (low, high) = cell.interval(0.9).unwrap();
            assert!(low < cell.mean && cell.mean < high && (cell.cdf(high) - 0.95).abs() < 1e-9);
        }
        for i in 0..data.n_rows() {
            for (j, v) in data.row(i).iter().enumerate().filter(|(_, v)| !v.is_nan()) {
                assert_eq!(filled.values()[(i, j)].to_bits(), v.to_bits(), "row {i}, column {j}");
            }
        }
    }
}

/// A model of any family answers what it can, and refuses the rest by the error that is documented.
#[track_caller]
fn check_answers(learned: &Learned, data: &Dataset) {
    let narrow = Dataset::new(Matrix::zeros(2, 1)).unwrap();
    let gappy = simulate::hide(data, 0.2, 9);
    let (n, mut rng) = (data.n_rows(), ChaCha8Rng::seed_from_u64(5));
    if let Trained::Sources(fit) = &learned.model {
        let noisy = matches!(fit.model, covary::ica::Mixing::Noisy(_));
        let no_density = Error::NoDensity { noisy };
        assert_eq!(learned.density(Rows::New).map(drop).unwrap_err(), no_density);
        assert_eq!(learned.row_scores(data).unwrap_err(), no_density);
        assert_eq!(learned.sample(3, &mut rng).unwrap_err(), no_density);
        if noisy {
            check_filled(learned, &gappy);
        } else {
            assert_eq!(learned.fill(Rows::New).map(drop).unwrap_err(), no_density);
            assert!(matches!(learned.scores(&gappy, None), Err(Error::GapsInSources { .. })));
        }
    } else {
        check_filled(learned, &gappy);
        let row_scores = learned.row_scores(&gappy).unwrap();
        assert!(finite(&row_scores.log_density));
        assert!(matches!(learned.row_scores(&narrow), Err(Error::ColumnCount { .. })));
        let in_time = learned.family.arrangement() != Arrangement::Exchangeable;
        for rows in [Rows::New, Rows::Training].into_iter().filter(|_| !in_time) {
            let density = learned.density(rows).unwrap();
            assert!(finite(&density.log_density(&gappy).unwrap()));
            assert!(matches!(density.log_density(&narrow), Err(Error::ColumnCount { .. })));
        }
        if in_time {
            // Rows follow each other, or columns are times: no density of rows of columns.
            assert!(matches!(learned.density(Rows::New).map(drop), Err(Error::Unsupported { .. })));
        } else {
            let direct = learned.density(Rows::New).unwrap().log_density(&gappy).unwrap();
            assert_eq!(bits(&row_scores.log_density), bits(&direct));
        }
        let linear = matches!(learned.model, Trained::Linear(_));
        let mixture = matches!(learned.model, Trained::Mixture(_));
        let RowScores { outlyingness, surprises, membership, .. } = row_scores;
        assert_eq!((outlyingness.is_some(), membership.is_some()), (linear, mixture));
        assert_eq!(surprises.is_some(), in_time);
        let (drawn, labels) = learned.sample(7, &mut rng).unwrap();
        assert_eq!((drawn.n_rows(), drawn.n_columns()), (7, learned.columns.len()));
        assert!(finite(drawn.as_slice()));
        assert_eq!(labels.map(|labels| labels.len()), mixture.then_some(7));
        let again = learned.sample(7, &mut ChaCha8Rng::seed_from_u64(5)).unwrap().0;
        assert_eq!(bits(again.as_slice()), bits(drawn.as_slice()));
        assert!(matches!(learned.fill(Rows::New).unwrap().fill(&narrow), Err(Error::ColumnCount { .. })));
    }
    let scores = learned.scores(data, None).unwrap();
    assert_eq!((scores.values.n_rows(), scores.values.n_columns()), (n, scores.names.len()));
    assert!(finite(scores.values.as_slice()));
    assert!(matches!(learned.scores(&narrow, None), Err(Error::ColumnCount { .. })));
    let shuffled = learned.family.arrangement() == Arrangement::Exchangeable;
    let has_own_alone = learned.family.has_views() || !shuffled || learned.family == Family::Ica;
    let projected = learned.scores(data, Some(Coordinates::Projection));
    assert_eq!(matches!(projected, Err(Error::Unsupported { .. })), has_own_alone, "{projected:?}");
    match learned.membership(data) {
        Ok(membership) => {
            assert_eq!(Some(&membership), scores.membership.as_ref());
            let models = learned.mixture().unwrap().mixture.models().len();
            assert_eq!((membership.names.len(), membership.probabilities.n_columns()), (models, models));
            assert!(membership.labels.iter().all(|&label| label < models));
        }
        Err(refused) => {
            assert!(matches!(refused, Error::NotAMixture { .. }) && scores.membership.is_none());
        }
    }
    match (&learned.model, learned.reconstruct(data, false)) {
        (Trained::Mixture(_), refused) => assert!(matches!(refused, Err(Error::NotOneModel { .. }))),
        (_, refused) if learned.family == Family::Pcca => {
            assert!(matches!(refused, Err(Error::Unsupported { method: "pcca", .. })));
        }
        (_, back) => assert!(finite(back.unwrap().as_slice())),
    }
}

#[test]
fn every_family_learns_is_kept_and_answers() {
    for Asked { name, request, table } in every_request() {
        let learned = request.learn(&table).unwrap_or_else(|e| panic!("{name}: {e}"));
        let kind = if request.classes.is_some() { Kind::Mixture } else { request.family.kind() };
        check_kind(&learned, kind);
        assert_eq!((learned.family, learned.seed), (request.family, request.seed), "{name}");
        assert!(request.family.methods().contains(&learned.method.name.as_str()), "{name}");
        let constants: Vec<&str> = learned.constants.iter().map(|c| c.name.as_str()).collect();
        // Times at which curves meet are columns like the others.
        let keeps = matches!(request.family.kind(), Kind::Mixture | Kind::Functional);
        let flat = if keeps { vec![] } else { vec!["always"] };
        assert_eq!(constants, flat, "{name}");

        let written = bytes(&learned);
        let read = model_file::read(written.as_slice()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(read, learned, "{name}");
        assert!(bytes(&read) == written, "{name}: written, read and written again");
        serde_json::from_str::<serde_json::Value>(&read.to_json()).expect("JSON");

        let map = read.column_map(table.column_names()).unwrap();
        assert_eq!(map, request.column_map(&table).unwrap(), "{name}");
        let data = map.dataset(&table).unwrap();
        check_answers(&read, &data);
        // The same request gives the same bytes.
        assert!(bytes(&request.learn(&table).unwrap()) == written, "{name}: learned again");
    }
}

#[test]
fn a_model_for_each_class_says_which() {
    let (table, _, truth) = simulate::mixture(Shape { rows: 80, columns: 4, n_components: 1 }, 2, 12.0, 3);
    for &family in Family::ALL.iter().filter(|family| family.has_classes()) {
        let of_rows = truth.iter().map(|&c| Some(c)).collect();
        let classes = Classes { of_rows, ..two_classes(80) };
        let learned = Request { classes: Some(classes), ..request(family) }.learn(&table).unwrap();
        let membership = learned.membership(&table).unwrap();
        assert!(membership.are_classes && membership.names == ["one", "other"], "{family}");
        assert_eq!(membership.labels, truth, "{family}");
    }
}

// What a family does not have.

/// The request with one thing that not every family has.
fn with(argument: Argument, request: Request) -> Request {
    match argument {
        Argument::Mixtures => Request { n_mixtures: Some(2), ..request },
        Argument::Classes => Request { classes: Some(two_classes(60)), ..request },
        Argument::Rotation => {
            let rotation = ("varimax".to_owned(), Rotation::Varimax { kaiser: true });
            Request { rotation: Some(rotation), ..request }
        }
        Argument::Standardize => Request { standardize: Some(true), ..request },
        Argument::Share => Request { n_components: Some(Components::Share(0.8)), ..request },
        other => panic!("{other}: say here how it is asked for"),
    }
}

#[test]
fn what_a_family_does_not_have_is_refused_and_what_it_has_is_learned() {
    for (argument, suits) in [
        (Argument::Mixtures, "mppca, mfa or gmm"),
        (Argument::Classes, "pca, ppca, fa or gaussian"),
        (Argument::Rotation, "pca, ppca, tppca, fa, bpca, bspca or gaussian"),
        (
            Argument::Standardize,
            "pca, ppca, tppca, spca, fa, bpca, bspca, gaussian, pcca, gfa, mppca, mfa, gmm or dfm",
        ),
        (Argument::Share, "pca, ppca, tppca, spca, fa, bpca, bspca, ica or dfm"),
    ] {
        let mut has = Vec::new();
        for &family in Family::ALL {
            let (asked, table) = (with(argument, request(family)), table_for(family, false));
            match asked.check() {
                Ok(()) => {
                    has.push(family);
                    asked.learn(&table).unwrap_or_else(|e| panic!("{argument} for {family}: {e}"));
                }
                Err(refused) => {
                    let want =
                        Error::NotForFamily { argument, family: family.name(), suits: suits.to_owned() };
                    assert_eq!(refused, want);
                    assert_eq!(asked.learn(&table).unwrap_err(), want, "learning refuses it, too");
                }
            }
        }
        assert_eq!(Family::names(|family| has.contains(&family)), suits, "{argument}");
    }
}

#[test]
fn what_a_model_for_each_class_does_not_have_is_refused() {
    for &family in Family::ALL {
        for argument in [Argument::Mixtures, Argument::Rotation] {
            let asked = with(argument, with(Argument::Classes, request(family)));
            let refused = asked.check().unwrap_err();
            // No sentence says of a family that it goes with itself and not with itself.
            if let Error::NotForFamily { family, suits, .. } = &refused {
                assert!(!suits.split([',', ' ']).any(|name| name == *family), "{refused}");
            } else {
                assert!(matches!(refused, Error::Unsupported { method: "a model for each class", .. }));
            }
        }
    }
}

#[test]
fn views_are_asked_of_families_that_have_them() {
    for &family in Family::ALL {
        let table = table_for(family, false);
        let wrong = if family.has_views() {
            Request::new(family)
        } else {
            let column =
                |j: usize| View { name: j.to_string(), columns: vec![table.column_names()[j].clone()] };
            Request { views: vec![column(0), column(1)], ..Request::new(family) }
        };
        let got = wrong.views.len();
        let refused = wrong.learn(&table).unwrap_err();
        if family.has_views() {
            assert!(
                matches!(refused, Error::NumberOfViews { got: g, .. } if g == got),
                "{family}: {refused}"
            );
        } else {
            let (family, suits) = (family.name(), "pcca or gfa".to_owned());
            assert_eq!(refused, Error::NotForFamily { argument: Argument::Views, family, suits });
        }
    }
}

// What who watches is told.

#[derive(Default)]
struct Recorder {
    events: Mutex<Vec<String>>,
    n_choosing: Mutex<usize>,
    n_fitting: Mutex<usize>,
    end_choice: bool,
    end_fit: bool,
}

impl Recorder {
    fn hear(&self, event: &str) {
        self.events.lock().unwrap().push(event.to_owned());
    }

    fn heard(&self) -> Vec<String> {
        self.events.lock().unwrap().clone()
    }
}

fn flow(end: bool) -> ControlFlow<()> {
    if end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

impl Watch for Recorder {
    fn mapped(&self, map: &ColumnMap) {
        assert!(!map.columns.is_empty());
        self.hear("mapped");
    }

    fn choosing(&self, done: usize, total: usize) -> ControlFlow<()> {
        assert!(done <= total && total > 0);
        *self.n_choosing.lock().unwrap() += 1;
        flow(self.end_choice)
    }

    fn chosen(&self, choice: &Choice) {
        assert!(choice.n_mixtures >= 1);
        self.hear("chosen");
    }

    fn fitting(&self, _: &Step) -> ControlFlow<()> {
        assert_eq!(self.heard().last().map(String::as_str), Some("chosen"), "a step of the fit");
        *self.n_fitting.lock().unwrap() += 1;
        flow(self.end_fit)
    }

    fn fitted(&self, learned: &Learned, choice: &Choice, data: &Dataset) {
        assert_eq!(learned.columns, data.column_names());
        if let Trained::Mixture(fit) = &learned.model {
            assert!(fit.classes.is_some() || fit.mixture.models().len() == choice.n_mixtures);
        }
        self.hear("fitted");
    }

    fn checking(&self, _: &Step) -> ControlFlow<()> {
        assert_eq!(self.heard().last().map(String::as_str), Some("fitted"), "a step of the check");
        ControlFlow::Continue(())
    }

    fn checked(&self, checked: &Checked) {
        assert!(checked.found().is_some(), "{checked:?}");
        self.hear("checked");
    }
}

#[test]
fn a_watcher_is_told_everything_once_and_in_order() {
    for Asked { name, request, table } in every_request() {
        let recorder = Recorder::default();
        let mut learned = request.learn_observed(&table, &recorder).unwrap();
        assert_eq!(recorder.heard(), ["mapped", "chosen", "fitted"], "{name}");
        // To watch changes nothing.
        assert!(bytes(&learned) == bytes(&request.learn(&table).unwrap()), "{name}");

        let map = request.column_map(&table).unwrap();
        let data = map.dataset(&table).unwrap();
        let checked = request.check_observed(&mut learned, &data, &recorder);
        let exact = matches!(&learned.model, Trained::Sources(fit) if matches!(fit.model, covary::ica::Mixing::Exact(_)));
        if request.classes.is_some() {
            assert!(matches!(checked, Err(Error::Unsupported { .. })), "{name}");
            assert_eq!(recorder.heard(), ["mapped", "chosen", "fitted"], "{name}");
        } else if exact {
            assert_eq!(checked.unwrap_err(), Error::NoDensity { noisy: false }, "{name}");
            assert_eq!(recorder.heard(), ["mapped", "chosen", "fitted"], "{name}");
        } else {
            let cells = checked.unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(recorder.heard(), ["mapped", "chosen", "fitted", "checked"], "{name}");
            // What was found by a fit without the cells is kept; sources are not fitted again.
            assert_eq!(learned.check.is_some(), request.family != Family::Ica, "{name}");
            assert!(!cells.is_empty(), "{name}");
        }
    }
}

#[test]
fn who_ends_the_choice_ends_the_work() {
    let mut asked_of = Vec::new();
    for &family in Family::ALL {
        let mut request = request(family);
        if family == Family::Ica {
            request.inference = Some("noisy".to_owned());
        }
        let recorder = Recorder { end_choice: true, ..Recorder::default() };
        let learned = request.learn_observed(&table_for(family, true), &recorder);
        if *recorder.n_choosing.lock().unwrap() > 0 {
            assert_eq!(learned.unwrap_err(), Error::Interrupted, "{family}");
            assert_eq!(recorder.heard(), ["mapped"], "{family}");
            asked_of.push(family.name());
        } else {
            assert!(learned.is_ok(), "{family}");
        }
    }
    // The others do not fit anything to choose.
    assert_eq!(
        asked_of,
        ["pca", "ppca", "tppca", "spca", "fa", "bspca", "mppca", "mfa", "gmm", "ica", "dfm", "fpca"]
    );
}

#[test]
fn a_fit_that_is_ended_is_returned_as_far_as_it_got() {
    for Asked { name, request, table } in every_request().into_iter().filter(|a| a.request.classes.is_none())
    {
        let recorder = Recorder { end_fit: true, ..Recorder::default() };
        let learned = request.learn_observed(&table, &recorder);
        let steps = *recorder.n_fitting.lock().unwrap();
        if steps == 0 {
            learned.unwrap_or_else(|e| panic!("{name}: {e}"));
            continue;
        }
        match learned {
            Ok(learned) => assert_eq!(learned.ending().termination, Termination::Interrupted, "{name}"),
            // A sampler that has no draw yet has no answer.
            Err(refused) => assert_eq!(refused, Error::Interrupted, "{name}"),
        }
        assert_eq!(steps, 1, "{name}: nobody asks again");
    }
}
