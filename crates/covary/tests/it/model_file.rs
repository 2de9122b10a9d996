//! Does a model come back from its file, to the last bit, and is every other file refused?

use crate::contract::on_threads;
use crate::damage::{self, sealed, with_number};
use covary::data::{Shape, simulate};
use covary::family::Family;
use covary::infer::{
    Acceleration, ChainSummary, ConditionalMaximization, Em, FitReport, Init, MethodRecord, Monitored,
    Newton, Objective, ObjectiveKind, Solver, Spectral, Termination, Warning,
};
use covary::io::{Error, model_file};
use covary::learned::{
    Constant, Learned, LinearFit, ParameterUncertainty, RotatedLoadings, Rows, Trained, Training,
};
use covary::model::{Mixture, Rotation, RotationSearch, Uncertainty, rotate};
use covary::select::{Coverage, SelfCheck};
use covary::select::{HeldOut, HeldOutAt, Score};
use covary::spec::{LoadingsPrior, MeanPrior, NoisePrior, Prior};
use covary::{Dataset, Density, Estimator, LinearGaussian, Matrix, Method, Noise, Spec};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fs::File;
use std::path::{Path, PathBuf};

pub(crate) fn bytes(learned: &Learned) -> Vec<u8> {
    let mut bytes = Vec::new();
    model_file::write(learned, &mut bytes).expect("parts that fit together");
    bytes
}

#[track_caller]
fn check_round_trip(learned: &Learned) {
    let written = bytes(learned);
    let read = model_file::read(written.as_slice()).expect("a file just written");
    assert_eq!(&read, learned);
    // `==` takes -0 for 0; the bytes do not.
    assert!(bytes(&read) == written, "written, read and written again");
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&n| n.to_owned()).collect()
}

/// The standard deviations of `everything`, 1 for the column that has none.
const SCALE: [f64; 3] = [0.5, 1.0, 1e-3];

/// Every field filled, with awkward numbers and names, by hand: no fit and no machine has a say.
pub(crate) fn everything() -> Learned {
    let loadings = Matrix::from_rows(&[[0.1 + 0.2, -0.0], [1e-310, 3.5], [-2.0, 1.0 / 3.0]]);
    let model = LinearGaussian::new(
        loadings,
        vec![1e300, -0.0, f64::MIN_POSITIVE],
        Noise::Diagonal(vec![0.1, 2.0, 1e-9]),
    );
    let at = |n_components: usize, shortfall: f64| HeldOutAt {
        n_components,
        mean: -1.25 - shortfall,
        standard_error: 0.1,
        shortfall,
        shortfall_error: shortfall / 3.0,
        marginal_mean: -1.3,
        rmse: 0.7,
        skill: f64::NEG_INFINITY,
    };
    let columns = || names(&["größe", "\"quoted\", with a comma", ""]);
    let fit = LinearFit {
        // The scale of a standardized fit: in files of the first two versions it is that of `column_sds`.
        model: model.and_then(|m| m.with_scale(Some(SCALE.to_vec()))).expect("valid parameters"),
        draws: None,
        rotation: Some(RotatedLoadings {
            name: "oblimin".to_owned(),
            rotated: covary::model::Rotated {
                loadings: Matrix::from_rows(&[[0.3, 0.1], [0.2, -3.5], [2.0, 0.7]]),
                transform: Matrix::from_rows(&[[1.0, 0.25], [0.0, -1.0]]),
                factor_correlations: Matrix::from_rows(&[[1.0, 0.2], [0.2, 1.0]]),
            },
        }),
        views: Vec::new(),
        spec: Spec {
            standardize: true,
            noise_floor: Some(0.1),
            allow_unidentified: true,
            prior: Prior {
                loadings: LoadingsPrior::Ard { relative_alpha: vec![0.1, 3.0] },
                noise: Some(NoisePrior { shape: 1.0, relative_rate: 0.05 }),
                mean: Some(MeanPrior { center: vec![0.0, -0.0, 1e-7], relative_precision: 2.0 }),
            },
            ..Spec::factor_analysis(2)
        },
        report: FitReport {
            objective: Objective { kind: ObjectiveKind::LogPosterior, value: -12.3 },
            trace: vec![f64::NEG_INFINITY, -20.0, -12.3],
            termination: Termination::IterationLimit,
            warnings: vec![
                Warning::StillRising { iterations: 2, remaining: f64::INFINITY },
                Warning::ObjectiveFell { iteration: 1, by: 1e-5 },
                Warning::NoiseAtFloor { columns: names(&["größe"]) },
                Warning::ConstantColumns { columns: names(&["unit\n"]) },
                Warning::SparseColumns { columns: columns() },
                Warning::UnseenPairs { pairs: 1, example: (String::new(), "größe".to_owned()) },
                Warning::Saturated,
            ],
            relevance: Vec::new(),
            monitored: Vec::new(),
        },
        choice: Some(HeldOut {
            by_n_components: vec![at(1, 0.5), at(2, 0.0)],
            n_hidden: 4,
            baseline_rmse: 1.5,
            // As of files from before there was anything else.
            score: Score::LogDensity,
            n_rows: 0,
            n_sets: 0,
            limited: false,
        }),
        fit_statistics: None,
        matrix: None,
        informative_rows: Vec::new(),
    };
    Learned {
        family: Family::Fa,
        columns: columns(),
        constants: vec![Constant { name: "unit\n".to_owned(), value: 0.1 }],
        method: MethodRecord::from(&Method::Em(Em { tolerance: 1e-9, seed: u64::MAX, ..Em::default() })),
        seed: u64::MAX,
        training: Training {
            n_rows: 7,
            n_observed_by_column: vec![7, 5, 3],
            column_means: vec![1.0, 0.5, -2.0],
            column_sds: vec![0.5, 0.0, 1e-3],
        },
        check: Some(SelfCheck {
            n_hidden: 4,
            rmse: 0.5,
            baseline_rmse: 1.0,
            skill: 0.75,
            skill_by_column: vec![Some(0.5), None, Some(-0.1)],
            coverage: vec![Coverage { level: 0.95, share: 0.9, standard_error: 0.02 }],
        }),
        filling: None,
        created_by: "covary 0.1.0".to_owned(),
        model: Trained::Linear(Box::new(fit)),
    }
}

/// The one model of it.
fn linear(learned: &Learned) -> &LinearFit {
    learned.linear().expect("one model")
}

/// The same, with its one model changed.
fn with_linear(mut learned: Learned, change: impl FnOnce(&mut LinearFit)) -> Learned {
    change(learned.linear_mut().expect("one model"));
    learned
}

fn fitted(data: &Dataset, spec: &Spec, method: &Method) -> Learned {
    Learned::of_fit(method.fit(data, spec).expect("a well-posed table"), data, spec, method)
}

fn em() -> Method {
    Method::Em(Em { max_iterations: 20, ..Em::default() })
}

fn small() -> Learned {
    let (data, _) = simulate::ppca(Shape { rows: 20, columns: 4, n_components: 1 }, 1);
    fitted(&data, &Spec::ppca(1), &Method::from_name("spectral").expect("a method"))
}

#[test]
fn everything_comes_back() {
    check_round_trip(&everything());
}

#[test]
fn every_kind_of_request_comes_back() {
    let (whole, _) = simulate::ppca(Shape { rows: 40, columns: 6, n_components: 2 }, 1);
    let data = simulate::hide(&whole, 0.1, 2);
    let with = |prior| Spec { prior, ..Spec::ppca(2) };
    let ard = LoadingsPrior::Ard { relative_alpha: vec![0.5, 10.0] };
    let mean = MeanPrior { center: vec![0.25; 6], relative_precision: 0.1 };
    for spec in [
        Spec::ppca(2),
        Spec::ppca(0),
        Spec::factor_analysis(2),
        Spec::factor_analysis(0),
        Spec { standardize: true, noise_floor: Some(1e-3), ..Spec::ppca(1) },
        Spec { allow_unidentified: true, ..Spec::factor_analysis(4) },
        with(Prior::weak()),
        with(Prior { loadings: ard, mean: Some(mean), noise: None }),
    ] {
        check_round_trip(&fitted(&data, &spec, &em()));
    }
}

#[test]
fn one_column_keeps_its_noise_family() {
    let data = Dataset::new(Matrix::from_rows(&[[1.0], [2.0], [4.0]])).expect("a table");
    for spec in [Spec::ppca(0), Spec::factor_analysis(0)] {
        check_round_trip(&fitted(&data, &spec, &em()));
    }
}

#[test]
fn scores_of_hidden_cells_come_back() {
    let mut learned = everything();
    let choice = learned.linear_mut().expect("one model").choice.as_mut().expect("one is kept");
    (choice.score, choice.n_rows, choice.n_sets, choice.limited) = (Score::Crps, 3, 2, true);
    check_round_trip(&learned);
}

#[test]
fn a_rotation_comes_back() {
    let (data, _) = simulate::factor_analysis(Shape { rows: 60, columns: 7, n_components: 2 }, 1);
    let mut learned = fitted(&data, &Spec::factor_analysis(2), &em());
    for (name, rotation) in [
        ("varimax", Rotation::Varimax { kaiser: true }),
        ("promax", Rotation::Promax { power: 4.0 }),
        ("oblimin", Rotation::Oblimin { gamma: 0.0 }),
    ] {
        let fit = learned.linear_mut().expect("one model");
        let rotated =
            rotate(fit.model.loadings(), &rotation, &RotationSearch::default()).expect("a rotation");
        fit.rotation = Some(RotatedLoadings { name: name.to_owned(), rotated });
        check_round_trip(&learned);
    }
}

#[test]
fn numbers_that_are_none_come_back() {
    let learned = with_linear(small(), |fit| {
        fit.report.trace = vec![f64::NAN];
        fit.report.objective.value = f64::NAN;
    });
    let written = bytes(&learned);
    let read = model_file::read(written.as_slice()).expect("a file just written");
    let report = &linear(&read).report;
    assert!(report.objective.value.is_nan() && report.trace[0].is_nan());
    assert!(bytes(&read) == written);
    let json: Value = serde_json::from_str(&read.to_json()).expect("JSON");
    assert_eq!((&json["objective"]["value"], &json["trace"][0]), (&json!("NaN"), &json!("NaN")));
}

#[test]
fn the_options_of_every_method_come_back() {
    let given = LinearGaussian::new(Matrix::zeros(2, 1), vec![0.0; 2], Noise::Isotropic(1.0)).expect("valid");
    for method in [
        Method::Spectral(Spectral { solver: Solver::Krylov, seed: 3 }),
        Method::Newton(Newton {
            max_iterations: 7,
            tolerance: 0.1 + 0.2,
            start: Some(vec![0.5, 0.1]),
            restarts: 0,
            seed: u64::MAX,
        }),
        Method::ConditionalMaximization(ConditionalMaximization {
            start: Some(vec![0.1, 1e-300, 5.0]),
            tolerance: f64::INFINITY,
            ..ConditionalMaximization::default()
        }),
        Method::ConditionalMaximization(ConditionalMaximization {
            start: Some(vec![]),
            ..Default::default()
        }),
        Method::Em(Em {
            parameter_expansion: false,
            acceleration: Acceleration::Squarem,
            init: Init::Random,
            restarts: 4,
            estimate_mean: false,
            ..Em::default()
        }),
    ] {
        let learned = Learned { method: MethodRecord::from(&method), ..small() };
        check_round_trip(&learned);
        assert_eq!(learned.method.to_method(), Ok(method));
    }
    for name in Method::NAMES {
        let method = Method::from_name(name).expect("a name is a method");
        assert_eq!(MethodRecord::from(&method).to_method(), Ok(method));
    }
    let record = MethodRecord::from(&Method::Em(Em { init: Init::Given(Box::new(given)), ..Em::default() }));
    check_round_trip(&Learned { method: record.clone(), ..small() });
    assert_eq!(
        record.to_method().expect_err("the start is not kept").to_string(),
        "option `init` is `given`; it must be spectral or random; given parameters cannot be named"
    );
}

#[test]
fn one_thread_and_two_write_the_same_bytes() {
    let (whole, _) = simulate::ppca(Shape { rows: 9000, columns: 20, n_components: 3 }, 1);
    let values = simulate::hide(&whole, 0.01, 2).into_values();
    let write = |threads| {
        let data = Dataset::new(values.clone()).expect("a table");
        on_threads(threads, || bytes(&fitted(&data, &Spec::ppca(3), &em())))
    };
    assert!(write(1) == write(2));
}

#[test]
fn a_file_is_hardly_larger_than_its_numbers() {
    let (d, q) = (1000, 20);
    let (data, truth) = simulate::ppca(Shape { rows: 5, columns: d, n_components: q }, 1);
    let wide = with_linear(small(), |fit| (fit.model, fit.spec) = (truth, Spec::ppca(q)));
    let learned = Learned { training: Training::of(&data), columns: data.column_names().to_vec(), ..wide };
    let written = bytes(&learned);
    // Loadings, mean, noise, trace, and three numbers per column of the table; then the names.
    let numbers = d * q + d + 1 + linear(&learned).report.trace.len() + 3 * d;
    let names: usize = learned.columns.iter().map(|name| name.len() + 5).sum();
    let rest = written.len() - 8 * numbers - names;
    assert!(rest < 2048, "{rest} bytes besides {numbers} numbers and {names} bytes of names");
}

#[test]
fn safetensors_opens_the_numbers() {
    for learned in [everything(), without_components()] {
        let written = bytes(&learned);
        let opened = safetensors::SafeTensors::deserialize(&written).expect("a file of its format");
        let loadings = opened.tensor("loadings").expect("loadings");
        let model = &linear(&learned).model;
        assert_eq!(loadings.shape(), [model.n_columns(), model.n_components()]);
        let want: Vec<u8> = model.loadings().as_slice().iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(loadings.data(), want);
    }
}

fn without_components() -> Learned {
    let model = LinearGaussian::new(Matrix::zeros(4, 0), vec![0.5; 4], Noise::Isotropic(2.0)).expect("valid");
    with_linear(small(), |fit| (fit.model, fit.spec) = (model, Spec::ppca(0)))
}

#[test]
fn json_has_everything_by_its_name() {
    let learned = everything();
    let json: Value = serde_json::from_str(&learned.to_json()).expect("JSON");
    assert_eq!(json["loadings"][1], json!([0.2, -3.5])); // the rotated ones
    assert_eq!(json["noise_variance"], json!([0.1, 2.0, 1e-9]));
    assert_eq!(json["components"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["method"]["options"]["max_iterations"], json!(2000));
    assert_eq!(json["method"]["options"]["init"], json!("spectral"));
    assert_eq!(json["seed"], json!(u64::MAX));
    assert_eq!(json["log_likelihood"], Value::Null); // a posterior was maximized
    assert_eq!(json["objective"], json!({ "kind": "log_posterior", "value": -12.3 }));
    assert_eq!(json["warnings"][0]["code"], json!("still_rising"));
    assert_eq!(json["warnings"][6]["message"], json!(Warning::Saturated.to_string()));
    assert_eq!(json["training"]["n_gaps"], json!(6));
    let likelihood: Value = serde_json::from_str(&small().to_json()).expect("JSON");
    assert_eq!(likelihood["log_likelihood"].as_f64(), Some(linear(&small()).report.objective.value));
    assert!(likelihood["noise_variance"].is_f64() && likelihood["termination"] == json!("closed_form"));
    serde_json::from_str::<Value>(&without_components().to_json()).expect("JSON");
}

// What is not a model.

#[track_caller]
fn check_refused(bytes: &[u8], sentence: &str) {
    let refused = model_file::read(bytes).expect_err("not a model").to_string();
    assert!(refused.contains(sentence), "{refused}");
}

/// The file with header and index changed.
fn edited(learned: &Learned, edit: impl FnOnce(&mut Value, &mut Value)) -> Vec<u8> {
    damage::edited(&bytes(learned), edit)
}

fn with_index(index: &str, data: &[u8]) -> Vec<u8> {
    [&(index.len() as u64).to_le_bytes(), index.as_bytes(), data].concat()
}

#[test]
fn other_files_are_refused_by_what_they_look_like() {
    check_refused(b"", "an empty file");
    check_refused(b"a,b\n", "text, such as a CSV table");
    check_refused(b"height,weight\n1.8,75\n", "text, such as a CSV table");
    check_refused(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", "gzip");
    check_refused(b"PAR1\x15\x04\x15\x10\x15\x14", "a Parquet table");
    check_refused(b"PK\x03\x04\x14\x00\x00\x00\x08\x00", "a zip archive");
    check_refused(b"ARROW1\0\0\xff\xff\xff\xff", "an Arrow table");
    check_refused(b"\x93NUMPY\x01\x00v\x00{'descr'", "a NumPy array");
    check_refused(&[0; 100], "bytes of another format");
    check_refused(
        &with_index(r#"{"weight":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}"#, &[0; 2]),
        "another program",
    );
    check_refused(&with_index(r#"{"__metadata__":{"format":"pt"}}"#, &[]), "another program");
    check_refused(&with_index("{nonsense}", &[]), "its index");
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let written = bytes(&everything());
    for end in 0..written.len() {
        let refused = model_file::read(&written[..end]).expect_err("a part is not the whole");
        let said = matches!(refused, Error::Truncated { got, .. } if got == end as u64);
        assert!(said || end < 9, "at {end}: {refused}");
    }
    let longer = [written.as_slice(), &[0]].concat();
    check_refused(&longer, "goes on after its");
}

#[test]
fn a_later_version_is_refused_by_name() {
    let later = edited(&small(), |header, _| {
        *header = json!({ "format_version": 4, "kind": "of a new sort", "created_by": "covary 7.0.0" });
    });
    check_refused(
        &later,
        "was written by covary 7.0.0 as version 4 of the model file; this covary reads up to version 3",
    );
    check_refused(&edited(&small(), |header, _| header["kind"] = json!("forest")), "kind `forest`");
}

#[test]
fn unknown_fields_are_ignored() {
    let learned = small();
    let more = edited(&learned, |header, _| {
        header["mood"] = json!({ "deep": [1, 2, { "er": null }] });
        header["spec"]["color"] = json!("blue");
    });
    assert_eq!(model_file::read(more.as_slice()).expect("a file of this version"), learned);
}

#[test]
fn contradictions_are_named() {
    let header =
        |edit: fn(&mut Value), sentence| check_refused(&edited(&everything(), |h, _| edit(h)), sentence);
    header(|h| h["columns"] = json!(["a"]), "column names: expected 3, got 1");
    header(|h| h["constants"] = json!([]), "its constants are not one number per name");
    header(|h| h["noise"] = json!("isotropic"), "its noise_variance of isotropic noise is not one number");
    header(|h| h["noise"] = json!("plaid"), "unknown variant `plaid`");
    header(|h| h["spec"]["n_components"] = json!(1), "the number of components is 2");
    header(|h| h["spec"]["noise_floor"] = json!("NaN"), "noise_floor is NaN");
    header(|h| h["spec"]["prior"]["loadings"]["relative_alpha"] = json!([1]), "precisions of the loadings");
    header(|h| h["n_rows"] = json!(3), "at most the number of rows");
    header(|h| h["n_rows"] = json!(u64::MAX), "such that its cells can be counted");
    header(|h| h["n_rows"] = json!(-1), "its header");
    header(|h| h["objective"]["value"] = json!("many"), "its header");
    header(|h| h["choice"]["by_n_components"] = json!([]), "shortfall");
    header(|h| h["warnings"] = json!([{ "code": "dragons" }]), "unknown variant `dragons`");
    header(|h| h["created_by"] = Value::Null, "its header");

    let index =
        |edit: fn(&mut Value), sentence| check_refused(&edited(&everything(), |_, i| edit(i)), sentence);
    index(|i| i["mean"]["dtype"] = json!("F32"), "its mean holds F32 instead of F64");
    index(|i| i["mean"]["shape"] = json!([3, 1]), "its mean has 2 dimensions instead of 1");
    index(|i| i["loadings"]["shape"] = json!([6]), "its loadings has 1 dimensions instead of 2");
    index(|i| i["loadings"]["shape"] = json!([2, 3]), "entries of the mean: expected 2, got 3");
    index(|i| i["mean"]["data_offsets"] = json!([0, 24]), "cannot lie at bytes");
    let renamed = |i: &mut Value| {
        let mean = i["mean"].take();
        i.as_object_mut().unwrap().remove("mean");
        i["average"] = mean;
    };
    index(renamed, "its mean is missing");

    // In the trace NaN is allowed.
    assert!(model_file::read(with_number(&bytes(&everything()), "trace", f64::NAN).as_slice()).is_ok());
    for (name, value) in [("mean", f64::INFINITY), ("noise_variance", 0.0), ("n_observed_by_column", 0.5)] {
        check_refused(&with_number(&bytes(&everything()), name, value), "is a damaged model file");
    }
    let torn = Learned { columns: names(&["a"]), ..everything() };
    let refused = model_file::write(&torn, &mut Vec::new()).expect_err("one name for three columns");
    assert_eq!(refused.to_string(), "column names: expected 3, got 1");
}

fn array_start(bytes: &[u8], name: &str) -> usize {
    let length = usize::try_from(u64::from_le_bytes(bytes[..8].try_into().unwrap())).unwrap();
    let index: Value = serde_json::from_slice(&bytes[8..8 + length]).expect("an index");
    8 + length + usize::try_from(index[name]["data_offsets"][0].as_u64().unwrap()).unwrap()
}

#[test]
fn claims_take_no_memory() {
    for length in [10, 1000, 1 << 39, 1 << 40, 1 << 41, u64::MAX] {
        let claimed = [&length.to_le_bytes()[..], b"{\"__metadata__\":"].concat();
        model_file::read(claimed.as_slice()).expect_err("there is no such index");
    }
    let claim = |shape: Value, end: u64| {
        edited(&everything(), |_, i| {
            i["trace"]["shape"] = shape;
            i["trace"]["data_offsets"][1] = json!(end);
        })
    };
    check_refused(&claim(json!([1_000_000_000_000_u64]), 8_000_000_000_000), "cannot lie at bytes");
    check_refused(&claim(json!([u64::MAX, u64::MAX]), u64::MAX), "cannot lie at bytes");
    check_refused(&claim(json!([u64::MAX / 8]), u64::MAX), "cannot lie at bytes");
    let written = bytes(&everything());
    let begin = array_start(&written, "trace") - array_start(&written, "column_means");
    let believable = claim(json!([1_000_000_000_000_u64]), begin as u64 + 8_000_000_000_000);
    check_refused(&believable, "cut short");
    // An array without cells may have any number of rows: the others hold it to theirs.
    let wide =
        edited(&without_components(), |_, i| i["loadings"]["shape"] = json!([1_000_000_000_000_u64, 0]));
    check_refused(&wide, "entries of the mean: expected 1000000000000, got 4");
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    check_refused(&with_index(&deep, &[]), "its index");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn flipped_bytes_never_panic(flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        for learned in [everything(), everything_uncertain()] {
            let mut damaged = bytes(&learned);
            for (at, to) in &flips {
                *at.get_mut(&mut damaged) = *to;
            }
            if let Ok(learned) = model_file::read(sealed(damaged).as_slice()) {
                check_usable(&learned);
            }
        }
    }

    #[test]
    fn any_bytes_never_panic(index in "[ -~]{0,60}", data in prop::collection::vec(any::<u8>(), 0..40)) {
        let _ = model_file::read(data.as_slice());
        let _ = model_file::read(with_index(&format!("{{{index}"), &data).as_slice());
    }
}

/// Whatever was read can be written again, described, and asked; answers need not be finite.
fn check_usable(learned: &Learned) {
    bytes(learned);
    serde_json::from_str::<Value>(&learned.to_json()).expect("JSON");
    learned.training.n_gaps();
    linear(learned).choice.as_ref().map(|choice| choice.chosen(covary::select::ChoiceRule::Maximum));
    let mut values = Matrix::from_fn(2, learned.columns.len(), |i, _| i as f64);
    values[(0, 0)] = f64::NAN;
    let rows = Dataset::new(values).expect("a table");
    for rows_are in [Rows::New, Rows::Training] {
        let density = learned.density(rows_are).expect("one model");
        density.log_density(&rows).expect("the model's columns");
        density.impute(&rows).expect("the model's columns");
        density.draw_gaps(&rows, 1, 2).expect("the model's columns");
    }
}

// Files from last year. `write_the_golden_file` made them: see the note beside them.

fn golden(version: u64) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/golden/model_files/version_{version}.covary"))
}

/// [`everything`] with what version 2 adds: uncertain parameters, draws of them, relevances.
pub(crate) fn everything_uncertain() -> Learned {
    let e = Matrix::from_rows(&[[0.5, 0.1, 0.0], [0.1, 0.3, -0.02], [0.0, -0.02, 0.01]]);
    let uncertainty = Uncertainty {
        relative: vec![e.clone(), e.clone(), e],
        shape: vec![2.5, 3.0, 1e9],
        coupled: true,
        inclusion: Vec::new(),
    };
    let draw = |shift: f64| {
        let w = Matrix::from_fn(3, 2, |i, j| shift + (2 * i + j) as f64);
        let noise = Noise::Diagonal(vec![0.1 + shift, 2.0, 3.0]);
        LinearGaussian::new(w, vec![shift; 3], noise).unwrap().with_scale(Some(SCALE.to_vec())).unwrap()
    };
    let summary = ChainSummary { mean: -1.5, sd: 0.5, mcse: 0.01, r_hat: Some(1.002), ess: 812.5 };
    with_linear(everything(), |fit| {
        fit.draws = Some(Mixture::equal(vec![draw(0.0), draw(0.25)]).unwrap());
        fit.model = fit.model.clone().with_uncertainty(uncertainty).unwrap();
        fit.report.relevance = vec![0.25, 1e9];
        fit.report.monitored = vec![
            Monitored { quantity: "ln σ²".to_owned(), summary },
            Monitored { quantity: "a constant".to_owned(), summary: ChainSummary { r_hat: None, ..summary } },
        ];
        fit.report.objective.kind = ObjectiveKind::LowerBound;
        fit.report.warnings.push(Warning::NotMixed {
            quantity: "ln σ²".to_owned(),
            r_hat: None,
            effective_draws: 12.5,
        });
    })
}

#[test]
fn uncertain_parameters_and_draws_come_back() {
    let learned = everything_uncertain();
    let again = model_file::read(bytes(&learned).as_slice()).expect("a file just written");
    assert_eq!(again, learned);
    assert_eq!(linear(&again).parameter_uncertainty(), ParameterUncertainty::Draws);
    assert_eq!(ParameterUncertainty::Draws.name(), "draws");
    let json: Value = serde_json::from_str(&again.to_json()).unwrap();
    assert_eq!((&json["format_version"], &json["relevance"]), (&json!(3), &json!([0.25, 1e9])));
    assert_eq!(json["lower_bound"], json!(-12.3));

    let refused = |edit: fn(&mut Value), sentence| {
        check_refused(&edited(&everything_uncertain(), |h, _| edit(h)), sentence);
    };
    refused(|h| h["n_draws"] = json!(3), "its draws do not have the shape of the model");
    refused(|h| h["n_draws"] = json!(u64::MAX), "its draws do not have the shape of the model");
    refused(|h| h["relevance"] = json!([1.0]), "relevances: expected 2, got 1");
    refused(|h| h["columns"] = json!([]), "column names: expected 3, got 0");
    // Without the word of it the numbers are not looked at: such a file takes the parameters as known.
    let known = edited(&everything_uncertain(), |h, _| h["uncertainty"] = Value::Null);
    assert!(linear(&model_file::read(known.as_slice()).unwrap()).model.uncertainty().is_none());
}

/// Files of a few hundred bytes whose claims would fill any memory, or index what is not there.
#[test]
fn claims_about_draws_and_covariances_are_held_against_the_numbers() {
    let empty = |index: &mut Value, name: &str, shape: Value| {
        index[name] = json!({ "dtype": "F64", "shape": shape, "data_offsets": [0, 0] });
    };
    let many = 1_u64 << 60;
    for isotropic in [true, false] {
        let hostile = edited(&everything_uncertain(), |header, index| {
            header["columns"] = json!([]);
            header["n_draws"] = json!(many);
            header["uncertainty"] = Value::Null;
            if isotropic {
                header["noise"] = json!("isotropic");
            }
            empty(index, "loadings", json!([0, 0]));
            empty(index, "mean", json!([0]));
            empty(index, "noise_variance", json!([0]));
            empty(index, "draws_loadings", json!([0, 0]));
            empty(index, "draws_mean", json!([many, 0]));
            empty(index, "draws_noise", json!([many, 0]));
        });
        assert!(model_file::read(hostile.as_slice()).is_err());
    }
    let wide = edited(&everything_uncertain(), |header, index| {
        header["columns"] = json!([]);
        empty(index, "loadings", json!([0, u64::MAX - 1]));
        empty(index, "mean", json!([0]));
        empty(index, "noise_variance", json!([0]));
        empty(index, "relative_covariances", json!([1, 0]));
    });
    assert!(model_file::read(wide.as_slice()).is_err());
}

/// As version 2 allowed it: a column without an observed cell.
fn unobserved(mut learned: Learned) -> Learned {
    learned.training.n_observed_by_column[1] = 0;
    learned
}

#[test]
fn version_3_still_opens() {
    let file = std::fs::File::open(golden(3)).expect("golden files are part of the project");
    assert_eq!(model_file::read(file).expect("a file of version 3"), everything_uncertain());
}

#[test]
fn version_2_still_opens() {
    let file = std::fs::File::open(golden(2)).expect("golden files are part of the project");
    assert_eq!(model_file::read(file).expect("a file of version 2"), unobserved(everything_uncertain()));
}

#[test]
fn version_1_still_opens() {
    let file = std::fs::File::open(golden(1)).expect("golden files are part of the project");
    let read = model_file::read(file).expect("a model file");
    assert_eq!(read, unobserved(everything()));
    assert_eq!(linear(&read).model.mean()[1].to_bits(), (-0.0_f64).to_bits());
}

#[test]
#[ignore = "writes the golden file of a new version: `cargo test --release -p covary --test it write_the_golden -- --ignored`"]
fn write_the_golden_file() {
    std::fs::write(golden(3), bytes(&everything_uncertain())).expect("a folder to write to");
}

/// Found by fuzzing: files of earlier versions that opened and could not be written again.
#[test]
fn every_file_that_opens_can_be_written_and_then_is_the_same_bytes_for_ever() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/model_files");
    let mut n_files = 0;
    for path in std::fs::read_dir(folder).expect("golden files").map(|entry| entry.expect("an entry").path())
    {
        if path.extension().is_none_or(|ending| ending != "covary") {
            continue;
        }
        n_files += 1;
        let once = bytes(&model_file::read(File::open(&path).expect("a file")).expect("a model"));
        let again = bytes(&model_file::read(&once[..]).expect("what was written"));
        assert_eq!(again, once, "{}", path.display());
    }
    assert_eq!(n_files, 11);
    // A column of which nothing was observed.
    let mut learned = everything();
    learned.training.n_observed_by_column[0] = 0;
    assert_eq!(model_file::read(&bytes(&learned)[..]).expect("what was written").training, learned.training);
}

/// The answers in `answers.json` are those that covary gave before a learned model of any family was one type.
mod golden_answers {
    use super::*;
    use covary::Coordinates;
    use covary::ica::Mixing;
    use covary::model::Predictive;

    const NAN: f64 = f64::NAN;
    /// Rows by their distance from the mean of the model, or of its first.
    const OFFSETS: [[f64; 3]; 5] =
        [[0.5, -1.0, 0.25], [NAN, 1.0, -0.5], [0.1, NAN, NAN], [NAN, NAN, NAN], [2.0, 0.3, NAN]];

    fn rows(mean: &[f64], n: usize) -> Dataset {
        Dataset::new(Matrix::from_fn(n, 3, |i, j| mean[j] + OFFSETS[i][j])).expect("a table")
    }

    /// Bit for bit; where other instructions than those of the recording machine are used, to twelve digits.
    #[track_caller]
    fn check(what: &str, got: &[f64], want: &Value) {
        let want = want.as_array().unwrap_or_else(|| panic!("{what} was recorded"));
        assert_eq!(got.len(), want.len(), "{what}");
        for (got, want) in got.iter().zip(want) {
            let want: f64 = want.as_str().unwrap().parse().unwrap();
            let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
            let close = (got - want).abs() <= 1e-12 * want.abs();
            let recorded_here = cfg!(all(target_arch = "x86_64", target_os = "linux"));
            assert!(same || close && !recorded_here, "{what}: {got:?}, recorded {want:?}");
        }
    }

    #[track_caller]
    fn check_density(what: &str, density: &Predictive<'_>, data: &Dataset, want: &Value) {
        check(what, &density.log_density(data).unwrap(), &want["log_density"]);
        check(what, density.draw_gaps(data, 1, 2).unwrap().as_slice(), &want["drawn"]);
    }

    fn filled(learned: &Learned, rows: Rows, data: &Dataset) -> Vec<f64> {
        let filled = learned.fill(rows).unwrap().fill(data).unwrap();
        filled.cells().iter().flat_map(|cell| [cell.mean, cell.sd]).collect()
    }

    /// Codes and numbers of warnings stay what they were; their sentences may be put better.
    fn without_words(mut described: Value) -> Value {
        for warning in described["warnings"].as_array_mut().expect("a list") {
            assert!(warning.as_object_mut().expect("an object").remove("message").is_some());
        }
        described
    }

    #[test]
    fn every_golden_file_answers_as_it_did() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/model_files");
        let text = std::fs::read_to_string(folder.join("answers.json")).expect("part of the project");
        let recorded: Value = serde_json::from_str(&text).expect("JSON");
        let recorded = recorded.as_object().expect("answers by file");
        assert_eq!(recorded.len(), 9);
        for (name, want) in recorded {
            let learned = model_file::read(File::open(folder.join(name)).expect("a file")).expect(name);
            match &learned.model {
                Trained::Linear(fit) => {
                    let data = rows(fit.model.mean(), 5);
                    let scores = fit.model.transform(&data, Coordinates::Posterior).unwrap();
                    check(name, scores.as_slice(), &want["scores"]);
                    for (key, which) in [("new", Rows::New), ("training", Rows::Training)] {
                        check_density(name, &learned.density(which).unwrap(), &data, &want[key]);
                        check(name, &filled(&learned, which, &data), &want[key]["filled"]);
                    }
                }
                Trained::Mixture(fit) => {
                    let data = rows(fit.mixture.models()[0].mean(), 5);
                    let scores = learned.scores(&data, None).unwrap();
                    let by_model: Vec<f64> = (0..2)
                        .flat_map(|k| (0..5).map(move |i| (i, k)))
                        .map(|at| scores.values[at])
                        .collect();
                    check(name, &by_model, &want["scores"]);
                    let probabilities = learned.membership(&data).unwrap().probabilities;
                    check(name, probabilities.as_slice(), &want["responsibilities"]);
                    for (key, which) in [("new", Rows::New), ("training", Rows::Training)] {
                        check_density(name, &learned.density(which).unwrap(), &data, &want[key]);
                        check(name, &filled(&learned, which, &data), &want[key]["filled"]);
                    }
                }
                Trained::Sources(fit) => {
                    let noisy = matches!(fit.model, Mixing::Noisy(_));
                    let data = rows(fit.model.mean(), if noisy { 5 } else { 1 });
                    check(name, learned.scores(&data, None).unwrap().values.as_slice(), &want["scores"]);
                    check(name, learned.reconstruct(&data, false).unwrap().as_slice(), &want["decoded"]);
                    if noisy {
                        check(name, &filled(&learned, Rows::New, &data), &want["filled"]);
                    }
                }
                _ => panic!("{name}: no such file was recorded"),
            }
            let described: Value = serde_json::from_str(&learned.to_json()).expect("JSON");
            assert_eq!(without_words(described), without_words(want["described"].clone()), "{name}");
        }
    }
}

#[test]
fn a_model_in_the_place_of_a_table_is_called_one() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/model_files");
    for name in ["version_1", "version_2", "version_3", "ica", "mixture_version_3"] {
        let file = File::open(folder.join(format!("{name}.covary"))).expect("a golden file");
        assert!(matches!(covary::io::csv::read(file), Err(Error::ModelAsTable)), "{name}");
    }
    // A table may well speak of such things.
    let text = "12345678,{\"__metadata__\":{\"covary\n1,2\n3,4\n";
    assert!(!matches!(covary::io::csv::read(text.as_bytes()), Err(Error::ModelAsTable)));
}
