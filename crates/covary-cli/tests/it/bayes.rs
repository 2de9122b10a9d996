//! Bayesian models and the number of components, from the command line.

use super::{folder_with_examples, learned, run_in, succeed};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn bytes(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).expect("written")
}

fn saved(folder: &Path, name: &str) -> covary::learned::LinearFit {
    learned(folder, name).linear().expect("one model").clone()
}

#[test]
fn every_inference_of_bpca_fits_fills_and_keeps_what_it_knows() {
    let folder = folder_with_examples();
    let root = folder.path();
    for (inference, uncertainty) in [
        ("structured", "posterior"),
        ("mean-field", "posterior"),
        ("evidence", "none"),
        ("gibbs --components 3 --prior draws=120 --prior warm_up=100", "draws"),
    ] {
        succeed(
            root,
            &format!("fit -q examples/wine_gaps.csv --model bpca --inference {inference} -o m.covary"),
        );
        let saved = saved(root, "m.covary");
        assert_eq!(
            (learned(root, "m.covary").family.name(), saved.parameter_uncertainty().name()),
            ("bpca", uncertainty),
            "{inference}"
        );
        let q = saved.model.n_components();
        assert!((1..12).contains(&q), "{inference}: {q}");
        assert_eq!(saved.report.relevance.len(), q, "{inference}");
        succeed(
            root,
            "impute -q examples/wine_gaps.csv --model m.covary --cells cells.csv --draws 2 --overwrite -o filled.csv",
        );
        assert_ne!(bytes(root, "filled-1.csv"), bytes(root, "filled-2.csv"));
        succeed(root, "score -q m.covary examples/wine_gaps.csv -o odd.csv");
        succeed(root, "sample -q m.covary --rows 3 -o new.csv");
        succeed(root, "transform -q m.covary examples/wine_gaps.csv --covariance -o scores.csv");
        for name in ["filled.csv", "cells.csv", "odd.csv", "new.csv", "scores.csv"] {
            let text = String::from_utf8(bytes(root, name)).expect("text");
            assert!(!text.contains("NaN") && !text.contains("inf"), "{inference}: {name}");
        }
        let said = succeed(root, "inspect m.covary").out;
        assert!(said.starts_with("Bayesian PCA") && said.contains("relevance"), "{said}");
    }
    let said = succeed(root, "impute examples/wine_gaps.csv --model bpca -o filled.csv").err;
    assert!(said.contains("of the 12 offered, columns standardized, by structured: converged"), "{said}");
    succeed(root, "fit -q examples/wine_gaps.csv --model fa --inference mean-field -o m.covary");
    assert_eq!(saved(root, "m.covary").parameter_uncertainty().name(), "posterior");
}

#[test]
fn threads_leave_no_trace_in_bayesian_files() {
    let folder = folder_with_examples();
    let root = folder.path();
    for inference in
        ["structured", "mean-field", "evidence", "gibbs --prior draws=30 --prior warm_up=20 --components 2"]
    {
        for threads in [1, 2] {
            succeed(
                root,
                &format!(
                    "fit -q examples/wine_gaps.csv --model bpca --inference {inference} --threads {threads} -o {threads}.covary"
                ),
            );
        }
        assert_eq!(bytes(root, "1.covary"), bytes(root, "2.covary"), "{inference}");
    }
}

#[test]
fn a_resumed_run_ends_as_one_that_never_stopped() {
    let folder = folder_with_examples();
    let root = folder.path();
    let fit =
        "fit -q examples/wine_gaps.csv --model bpca --inference gibbs --components 2 --prior warm_up=50";
    succeed(root, &format!("{fit} --prior draws=60 -o whole.covary"));
    succeed(root, &format!("{fit} --prior draws=20 --checkpoint chains -o part.covary"));
    assert_eq!(saved(root, "part.covary").draws.expect("draws").models().len(), 80);
    succeed(root, &format!("{fit} --prior draws=60 --checkpoint chains -o resumed.covary"));
    assert_eq!(bytes(root, "whole.covary"), bytes(root, "resumed.covary"));

    let other = run_in(root, &"fit -q examples/wine.csv --model bpca --inference gibbs --components 2 --checkpoint chains -o x.covary".split(' ').collect::<Vec<_>>(), b"");
    assert_eq!(other.code, Some(1));
    assert!(other.err.contains("chains: was begun with another table"), "{}", other.err);
    fs::write(root.join("chains"), b"nonsense").expect("a file");
    let broken =
        run_in(root, &format!("{fit} --checkpoint chains -o x.covary").split(' ').collect::<Vec<_>>(), b"");
    assert_eq!(broken.code, Some(1));
    assert!(broken.err.contains("chains: "), "{}", broken.err);
}

#[test]
fn wrong_calls_say_what_would_be_right() {
    let folder = folder_with_examples();
    let refused = |command: &str, sentence: &str| {
        let said = run_in(folder.path(), &command.split_whitespace().collect::<Vec<_>>(), b"");
        assert_eq!(said.code, Some(2), "{command}: {}", said.err);
        assert!(said.err.contains(sentence), "{command}: {}", said.err);
    };
    let fit = "fit examples/wine_gaps.csv -o x.covary";
    refused(
        &format!("{fit} --model bpca --inference em"),
        "give one of structured, mean-field, evidence, gibbs",
    );
    refused(
        &format!("{fit} --inference structured"),
        "does not lead to --model ppca; give one of spectral, em",
    );
    refused(&format!("{fit} --model bpca --prior color=blue"), "structured has no option `color`; it has");
    refused(&format!("{fit} --model bpca --prior noise_rate"), "such as noise_rate=0.01");
    refused(&format!("{fit} --model bpca --prior noise_rate=much"), "noise_rate");
    refused(
        &format!("{fit} --model bpca --inference evidence --checkpoint chains"),
        "--checkpoint goes with --inference gibbs",
    );
}

#[test]
fn select_compares_recommends_and_says_why() {
    let folder = folder_with_examples();
    let root = folder.path();
    let said = succeed(root, "select examples/wine_gaps.csv -q");
    assert!(said.err.is_empty(), "{}", said.err);
    assert!(said.out.contains("components, selected by held-out cells"), "{}", said.out);
    let json: Value = serde_json::from_str(
        &succeed(root, "select examples/wine.csv -q --json --sample --max-components 6").out,
    )
    .expect("JSON");
    let rows = json["by_n_components"].as_array().expect("rows");
    assert_eq!(rows.len(), 7);
    let total: f64 = rows.iter().map(|r| r["probability"].as_f64().expect("sampled")).sum();
    assert!((total - 1.0).abs() < 1e-9);
    for key in ["log_likelihood", "aic", "bic", "log_evidence", "lower_bound"] {
        assert!(rows.iter().all(|r| r[key].is_number()), "{key}");
    }
    assert_eq!(json["recommended"], json["choices"]["held_out_cells"]);
    assert_eq!(json["posterior"]["a1"], serde_json::json!(0.1));
    let plain = succeed(root, "select examples/wine.csv -q --standardize=false --max-components 4").out;
    assert!(plain.contains("selected by Minka's evidence"), "{plain}");
    // A column that others add up to leaves criteria out, not the answer.
    let redundant = "a,b,c\n1,2,3\n2,1,3\n4,1,5\n0,3,3\n2,2,4\n5,3,8\n";
    let said = run_in(root, &["select", "-", "-q"], redundant.as_bytes());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let said = succeed(root, "select examples/wine_gaps.csv -q --sample --max-components 2");
    assert!(said.err.contains("complete tables only"), "{}", said.err);
    // The same seed gives the same answer, on any number of threads.
    let on = |threads: usize| {
        succeed(root, &format!("select examples/wine_gaps.csv -q --json --threads {threads}")).out
    };
    assert_eq!(on(1), on(2));
}
