//! Do independent components come back from their file, to the last bit, and is every other file refused?

use crate::damage::{self, sealed};
use crate::model_file::bytes;
use covary::family::{Components, Family, Request};
use covary::ica::{Fit, Kind, Mixing, NoisyMixing, Unmixing, Warning};
use covary::infer::{MethodRecord, Termination};
use covary::io::{self, model_file};
use covary::learned::{Constant, Learned, Rows, Trained, Training};
use covary::model::Fill;
use covary::{Dataset, Error, Matrix};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::PathBuf;

fn open(bytes: &[u8]) -> Result<Learned, io::Error> {
    let read = model_file::read(bytes)?;
    read.sources().expect("independent components were written");
    Ok(read)
}

/// The fit of it, to change.
fn fit_of(learned: &mut Learned) -> &mut Fit {
    match &mut learned.model {
        Trained::Sources(fit) => fit,
        _ => panic!("independent components"),
    }
}

/// Every field filled, with awkward numbers and names, by hand: no fit and no machine has a say.
pub(crate) fn exact() -> Learned {
    let whitening = Matrix::from_rows(&[[0.5, -0.0, 1e-310], [1.0 / 3.0, 2.0, 0.0]]);
    let rotation = Matrix::from_rows(&[[0.0, 1.0], [-1.0, 0.0]]);
    let mixing = Matrix::from_rows(&[[0.1 + 0.2, 1.0], [-2.0, 1e-9], [3.5, -0.0]]);
    let model = Unmixing::new(vec![1e300, -0.0, f64::MIN_POSITIVE], whitening, rotation, mixing).unwrap();
    let options = [("contrast", "exp"), ("tolerance", "1e-6")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    let fit = Fit {
        model: Mixing::Exact(model),
        kurtosis: vec![f64::NAN, -1.2],
        n_iterations: 17,
        termination: Termination::IterationLimit,
        trace: vec![-3.0, -2.5],
        kinds: vec![Kind::Super, Kind::Sub],
        warnings: vec![
            Warning::NotConverged { iterations: 17, left: 1e-3, tolerance: 1e-6 },
            Warning::Gaussian { sources: vec![1, 2] },
        ],
    };
    Learned {
        family: Family::Ica,
        columns: ["größe", "\"quoted\", with a comma", ""].map(str::to_owned).to_vec(),
        constants: vec![Constant { name: "always".to_owned(), value: -0.0 }],
        method: MethodRecord { name: "fastica".to_owned(), options: options.into_iter().collect() },
        seed: u64::MAX,
        training: Training {
            n_rows: 40,
            n_observed_by_column: vec![40, 40, 40],
            column_means: vec![0.1, -5.0, 1e-3],
            column_sds: vec![1.0, 2.0, 0.5],
        },
        check: None,
        filling: None,
        created_by: "covary 0.1.0".to_owned(),
        model: Trained::Sources(Box::new(fit)),
    }
}

pub(crate) fn noisy() -> Learned {
    let mixing = Matrix::from_rows(&[[0.1 + 0.2, 1.0], [-2.0, 1e-9], [3.5, -0.0]]);
    let model = NoisyMixing::new(mixing, vec![1e3, -0.0, 0.25], vec![0.1, 2.0, 1e-9]).unwrap();
    let mut saved = exact();
    let fit = fit_of(&mut saved);
    fit.model = Mixing::Noisy(model);
    fit.kinds.clear();
    fit.warnings = vec![
        Warning::NoiseAtFloor { columns: vec!["größe".to_owned()] },
        Warning::LightTails { sources: vec![2] },
    ];
    saved.training.n_observed_by_column = vec![40, 39, 1];
    saved
}

#[test]
fn both_kinds_come_back() {
    for saved in [exact(), noisy()] {
        let written = bytes(&saved);
        let read = open(&written).expect("a file just written");
        // NaN is no number, so that bytes are compared instead.
        assert!(bytes(&read) == written, "written, read and written again");
        let (got, want) = (read.sources().unwrap(), saved.sources().unwrap());
        assert_eq!((&got.model, &got.warnings), (&want.model, &want.warnings));
        let json: Value = serde_json::from_str(&read.to_json()).expect("JSON");
        assert_eq!((&json["kind"], &json["kurtosis"]), (&json!("ica"), &json!(["NaN", -1.2])));
        assert!(matches!(read.linear(), Err(Error::NoDensity { .. })));
    }
    assert_eq!(exact().noisy_sources().unwrap_err(), Error::NoDensity { noisy: false });
    for (sources, sentence) in [
        (
            exact(),
            "independent components are not a density of rows, and only noisy ones impute missing values",
        ),
        (noisy(), "independent components are not a density of rows"),
    ] {
        let read = model_file::read(bytes(&sources).as_slice()).unwrap();
        let refused = read.density(Rows::New).map(drop).unwrap_err();
        assert_eq!(refused.to_string(), sentence);
    }
}

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/model_files/{name}.covary"))
}

#[test]
fn golden_files_still_open() {
    for (name, saved) in [("ica", exact()), ("ica_noisy", noisy())] {
        for version in ["", "_version_3"] {
            let read = std::fs::read(golden(&format!("{name}{version}"))).expect("part of the project");
            let mut read = open(&read).expect("a file of an earlier version");
            if name == "ica_noisy" && version.is_empty() {
                // As version 2 allowed it: a column without an observed cell.
                assert_eq!(std::mem::replace(&mut read.training.n_observed_by_column[2], 1), 0);
            }
            assert!(bytes(&read) == bytes(&saved), "{name}{version}");
        }
    }
}

#[test]
#[ignore = "writes the golden files of a new version: `cargo test --release -p covary --test it write_the_golden -- --ignored`"]
fn write_the_golden_files_of_sources() {
    for (name, saved) in [("ica_version_3", exact()), ("ica_noisy_version_3", noisy())] {
        std::fs::write(golden(name), bytes(&saved)).expect("a folder to write to");
    }
}

/// The file with header and index changed.
fn edited(saved: &Learned, edit: impl FnOnce(&mut Value, &mut Value)) -> Vec<u8> {
    damage::edited(&bytes(saved), edit)
}

#[test]
fn parts_that_contradict_each_other_are_named() {
    let check = |saved: &Learned, edit: &dyn Fn(&mut Value, &mut Value), sentence: &str| {
        let refused = open(&edited(saved, edit)).expect_err("not a model").to_string();
        assert!(refused.contains(sentence), "{refused}");
    };
    check(&exact(), &|h, _| h["columns"] = json!([]), "40 rows and 0 columns");
    check(&exact(), &|h, _| h["columns"] = json!(["a"]), "column names: expected 3, got 1");
    check(&exact(), &|h, _| h["noisy"] = json!(true), "noise_variance");
    check(&noisy(), &|h, _| h["noisy"] = json!(false), "whitening");
    check(&exact(), &|h, _| h["kinds"] = json!(["super"]), "kinds of sources: expected 2, got 1");
    check(&exact(), &|h, _| h["kinds"] = json!(["loud", "sub"]), "name `loud`, which is no density");
    check(&exact(), &|h, _| h["constants"] = json!([]), "are not one number per name");
    check(&exact(), &|h, _| h["n_rows"] = json!(3), "at most the number of rows");
    check(&exact(), &|h, _| h["termination"] = json!("bored"), "bored");
    check(&exact(), &|h, _| h["warnings"] = json!([{ "code": "rain" }]), "rain");
    check(&exact(), &|_, i| i["mixing"]["shape"] = json!([2, 3]), "mixing");
    check(&exact(), &|_, i| i["unmixing"]["shape"] = json!([3, 2]), "unmixing");
    check(&exact(), &|_, i| i["rotation"]["shape"] = json!([4, 1]), "rotation");
    check(&exact(), &|_, i| i["kurtosis"] = i["mean"].clone(), "cannot lie at bytes");
    let mut unfit = exact();
    fit_of(&mut unfit).kurtosis.pop();
    assert!(matches!(model_file::write(&unfit, Vec::new()), Err(io::Error::Request(_))));
    let mut unfit = exact();
    unfit.constants[0].value = f64::INFINITY;
    assert!(matches!(model_file::write(&unfit, Vec::new()), Err(io::Error::Request(_))));
}

/// Whatever was read can be written again, described, and asked; answers need not be finite.
fn check_usable(saved: &Learned) {
    bytes(saved);
    serde_json::from_str::<Value>(&saved.to_json()).expect("JSON");
    saved.training.n_gaps();
    let whole = Matrix::from_fn(2, saved.columns.len(), |i, _| i as f64);
    let mixing = &saved.sources().unwrap().model;
    let sources = mixing.transform(&Dataset::new(whole.clone()).unwrap()).expect("the model's columns");
    mixing.decode(&sources).expect("as many sources");
    if let Ok(model) = saved.noisy_sources() {
        let mut gaps = whole;
        gaps[(0, 0)] = f64::NAN;
        assert_eq!(model.fill(&Dataset::new(gaps).unwrap()).expect("the model's columns").cells().len(), 1);
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let written = bytes(&exact());
    for end in 0..written.len() {
        assert!(open(&written[..end]).is_err(), "cut at {end}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn flipped_bytes_never_panic(flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        for saved in [exact(), noisy()] {
            let mut damaged = bytes(&saved);
            for (at, to) in &flips {
                *at.get_mut(&mut damaged) = *to;
            }
            if let Some(saved) = model_file::read(sealed(damaged).as_slice()).ok().filter(|s| s.sources().is_ok()) {
                check_usable(&saved);
            }
        }
    }
}

#[test]
fn shares_of_noisy_sources_are_those_of_the_fitted_covariance() {
    // Sources with lighter tails than Laplace: they seem to have more than their variance.
    let source = |i: usize| [(i as f64 * 0.37).sin(), (i as f64 * 1.7).cos(), (i as f64 * 0.11).sin()];
    for scale in [[1.0, 1.0, 1.0, 1.0], [1e-3, 1.0, 50.0, 1e4]] {
        let cell = |i: usize, j: usize| {
            let s = source(i);
            scale[j] * (2.0 * s[j % 3] + 0.5 * s[(j + 1) % 3] + 0.05 * ((i * (j + 7)) as f64).sin())
        };
        let table = Dataset::new(Matrix::from_fn(400, 4, cell)).unwrap();
        let inference = Some("noisy".to_owned());
        let n_components = Some(Components::Number(2));
        let learned = Request { inference, n_components, ..Request::new(Family::Ica) }.learn(&table).unwrap();
        let (shares, model) = (learned.source_variance_ratio().unwrap(), learned.noisy_sources().unwrap());
        let w = model.mixing();
        let noise = Matrix::from_fn(4, 4, |i, j| if i == j { model.noise_variances()[i] } else { 0.0 });
        let signal = w.dot_t(w);
        let trace = |m: &Matrix| (0..4).map(|j| m[(j, j)]).sum::<f64>();
        let total = trace(&signal) + trace(&noise);
        for (k, share) in shares.iter().enumerate() {
            let own = (0..4).map(|j| w[(j, k)].powi(2)).sum::<f64>() / total;
            assert!((share - own).abs() < 1e-12, "{share} {own}");
        }
        assert!((shares.iter().sum::<f64>() + trace(&noise) / total - 1.0).abs() < 1e-12, "{shares:?}");
    }
}
