//! Whether factors fit, and correlation matrices, by the command.

use super::{folder_with_examples, learned, repository, run_in, succeed};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

const CORRELATIONS: &str =
    "test,a,b,c,d\na,1,0.6,0.5,0.4\nb,0.6,1,0.4,0.3\nc,0.5,0.4,1,0.3\nd,0.4,0.3,0.3,1\n";

#[test]
fn fit_inspect_json_and_report_say_whether_factors_fit() {
    let folder = folder_with_examples();
    let root = folder.path();
    for table in ["wine", "wine_gaps"] {
        let call = format!(
            "fit examples/{table}.csv --model fa --components 3 --rotation oblimin --json -o {table}.covary"
        );
        let said = succeed(root, &call);
        let kept = learned(root, &format!("{table}.covary"));
        let fit = kept.linear().unwrap();
        let found = fit.fit_statistics.as_ref().unwrap();
        let kind = if table == "wine" { "Bartlett's" } else { "likelihood-ratio" };
        let test = format!(
            "test of fit: {kind} chi-squared {:.2}, 42 degrees of freedom, p",
            found.chi_square.unwrap()
        );
        let indices = format!("TLI {:.3}, CFI {:.3}, SRMR", found.tli.unwrap(), found.cfi.unwrap());
        assert!(said.err.contains(&test) && said.err.contains(&indices), "{}", said.err);
        let inspected = succeed(root, &format!("inspect {table}.covary")).out;
        assert!(inspected.contains(&test) && inspected.contains(&indices), "{inspected}");
        assert!(
            inspected.contains("communality  uniqueness")
                && inspected.contains("correlations of the factors")
        );
        let fitted: Value = serde_json::from_str(&said.out).unwrap();
        let shown: Value =
            serde_json::from_str(&succeed(root, &format!("inspect --json {table}.covary")).out).unwrap();
        assert_eq!(fitted["model"]["fit_statistics"], shown["fit_statistics"]);
        let statistics = &shown["fit_statistics"];
        assert_eq!(statistics["chi_square"].as_f64(), found.chi_square);
        assert_eq!(statistics["rmsea_upper"].as_f64(), found.rmsea.map(|r| r.high));
        assert_eq!(statistics["correction"], if table == "wine" { "bartlett" } else { "none" });
        assert_eq!(statistics["communalities"]["ash"].as_f64(), Some(found.communality_shares[2]));
        let call = format!(
            "report examples/{table}.csv --model fa --components 3 --rotation oblimin --json -o r.html"
        );
        let facts: Value = serde_json::from_str(&succeed(root, &call).out).unwrap();
        let page = fs::read_to_string(root.join("r.html")).unwrap();
        assert!(page.contains("Do the factors fit?") && page.contains(&indices), "the page");
        assert_eq!(facts["model"]["fit_statistics"]["cfi"].as_f64(), found.cfi);
        let phi = facts["model"]["fit_statistics"]["factor_correlations"][0][0].as_f64().unwrap();
        assert!((phi - 1.0).abs() < 1e-12);
    }
}

#[test]
fn a_correlation_matrix_is_fitted_when_it_is_called_one() {
    let folder = folder_with_examples();
    let root = folder.path();
    fs::write(root.join("r.csv"), CORRELATIONS).unwrap();
    let refuse = |call: &str| {
        let said = run_in(root, &call.split_whitespace().collect::<Vec<_>>(), b"");
        assert_ne!(said.code, Some(0), "{call}: {}", said.err);
        said.err
    };
    assert!(
        refuse("fit r.csv --model fa --components 1 -o x.covary").contains("--matrix correlation --rows N")
    );
    let said =
        succeed(root, "fit r.csv --model fa --components 1 --matrix correlation --rows 200 -o m.covary");
    assert!(said.err.contains("a correlation matrix of 4 columns, from 200 rows"), "{}", said.err);
    assert!(said.err.contains("2 degrees of freedom, p = "), "{}", said.err);
    let inspected = succeed(root, "inspect m.covary").out;
    assert!(
        inspected.contains("learned from a correlation matrix of 200 rows") && !inspected.contains("mean"),
        "{inspected}"
    );
    succeed(root, "plot m.covary --kind loadings -o l.svg");
    for verb in [
        "transform m.covary r.csv",
        "score m.covary r.csv",
        "sample m.covary --rows 2",
        "reconstruct m.covary r.csv",
        "impute r.csv --model m.covary -o f.csv",
    ] {
        assert!(refuse(verb).contains("cannot be had from a correlation matrix"), "{verb}");
    }
    assert!(
        refuse("fit r.csv --model fa --matrix correlation --rows 200 -o x.covary")
            .contains("say --components N")
    );
    assert!(
        refuse("fit r.csv --model ppca --components 1 --matrix correlation --rows 200 -o x")
            .contains("--matrix goes with --model fa")
    );
    assert!(refuse("fit r.csv --model fa --components 1 --matrix correlation -o x").contains("--rows"));
    assert!(refuse("fit r.csv --model fa --components 1 --rows 20 -o x").contains("--matrix"));
}

/// What R prints of factor analyses of published matrices and of a table is what the report has, as it says it and as data.
#[test]
#[allow(clippy::print_stderr, reason = "a test that was passed over says so")]
fn the_report_has_the_statistics_of_r() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    let data = std::env::var_os("COVARY_DATA").map_or_else(|| repository("../shared/data"), PathBuf::from);
    let golden = fs::read_to_string(repository("crates/covary/tests/golden/factor_fit/fit.json")).unwrap();
    let golden: Value = serde_json::from_str(&golden).unwrap();
    for case in golden["cases"].as_array().unwrap() {
        let (q, n) = (&case["factors"], &case["rows"]);
        let (file, how) = match case["name"].as_str().unwrap() {
            "ability" => ("fa_covariances/ability_cov.csv", format!("--matrix covariance --rows {n}")),
            "harman23" => ("fa_covariances/harman23_cor.csv", format!("--matrix correlation --rows {n}")),
            "harman74" => ("fa_covariances/harman74_cor.csv", format!("--matrix correlation --rows {n}")),
            "holzinger" => (
                "holzinger_swineford/holzinger_swineford1939.csv",
                "--model fa --columns x1,x2,x3,x4,x5,x6,x7,x8,x9".to_owned(),
            ),
            _ => continue,
        };
        let Ok(text) = fs::read(data.join(file)) else {
            eprintln!("SKIPPED: {file} is absent; set COVARY_DATA to the folder of data sets");
            return;
        };
        fs::write(root.join("data.csv"), text).unwrap();
        let said = succeed(root, &format!("report data.csv {how} --components {q} --json -o page.html"));
        let facts: Value = serde_json::from_str(&said.out).unwrap();
        let found = &facts["model"]["fit_statistics"];
        let close = |got: &Value, want: &Value, tolerance: f64| {
            let (got, want) = (got.as_f64().unwrap(), want.as_f64().unwrap());
            assert!((got - want).abs() < tolerance * want.abs().max(1.0), "{case}: {got}, {want}");
        };
        let r = &case["lavaan"];
        assert_eq!(found["degrees_of_freedom"], r["df"]);
        close(&found["chi_square"], &case["factanal"]["chi_square"], 1e-6);
        close(&found["p_value"], &case["factanal"]["p"], 1e-6);
        for (k, name) in ["rmsea", "rmsea.ci.lower", "rmsea.ci.upper"].iter().enumerate() {
            close(&found["rmsea"][k], &r[*name], 1e-5);
        }
        for (name, key) in [("tli", "tli"), ("cfi", "cfi"), ("srmr", "srmr_bentler_nomean")] {
            close(&found[name], &r[key], 1e-5);
        }
        let uniquenesses = case["factanal"]["uniquenesses"].as_array().unwrap();
        for (column, want) in found["columns"].as_array().unwrap().iter().zip(uniquenesses) {
            close(&Value::from(1.0 - column["communality"].as_f64().unwrap()), want, 2e-4);
        }
        // Words are the same on the page and on the screen.
        let page = fs::read_to_string(root.join("page.html")).unwrap();
        for line in found["words"].as_array().unwrap() {
            let line = line.as_str().unwrap();
            let behind = line.split_once(": ").map_or(line, |(_, rest)| rest);
            assert!(page.contains(behind) && said.err.contains(line), "{line}");
        }
    }
}

#[test]
fn a_matrix_has_a_page_with_what_it_allows() {
    let folder = folder_with_examples();
    let root = folder.path();
    fs::write(root.join("r.csv"), CORRELATIONS).unwrap();
    let call = "report r.csv --matrix correlation --rows 200 --components 1 --json -o r.html";
    let said = succeed(root, call);
    assert!(said.err.contains("a correlation matrix of 4 columns, from 200 rows"), "{}", said.err);
    let facts: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&facts["matrix"]["kind"], &facts["matrix"]["n_rows"]), (&"correlation".into(), &200.into()));
    assert!(facts["model"]["family"] == "fa" && facts["table"].is_null() && facts["odd_rows"].is_null());
    let page = fs::read_to_string(root.join("r.html")).unwrap();
    for words in [
        "A correlation matrix of 4 columns, computed from 200 rows",
        "Do the factors fit?",
        "Loadings and communalities",
        "data-figure=\"scree\"",
        "data-figure=\"hinton\"",
        "data-figure=\"covariance\"",
        "has no rows. They need the observations themselves",
        "200 complete and independent rows is taken as given",
    ] {
        assert!(page.contains(words), "{words}");
    }
    succeed(root, &call.replace("r.html", "again.html"));
    let body = |name: &str| {
        let page = fs::read_to_string(root.join(name)).unwrap();
        page.split("To reproduce this page").next().map(str::to_owned)
    };
    assert_eq!(body("r.html"), body("again.html"));
    let refuse = |call: &str| {
        let said = run_in(root, &call.split_whitespace().collect::<Vec<_>>(), b"");
        assert_ne!(said.code, Some(0), "{call}");
        said.err
    };
    let unsaid = refuse("report r.csv --matrix correlation --rows 200 -o x.html");
    assert!(unsaid.contains("say --components N (parallel analysis retains 1)"), "{unsaid}");
    assert!(refuse("report r.csv --matrix correlation -o x.html").contains("--rows"));
    let other = refuse("report r.csv --model bpca --matrix correlation --rows 200 --components 1 -o x.html");
    assert!(other.contains("--matrix goes with --model fa"), "{other}");
    // As a table it is spoken of, and a model in its place says what to type.
    let warned = run_in(root, &["fit", "r.csv", "--components", "1", "-o", "p.covary"], b"");
    assert!(warned.err.contains("(--model fa --matrix correlation --rows N)"), "{}", warned.err);
    succeed(root, "fit -q r.csv --model fa --components 1 --matrix correlation --rows 200 -o m.covary");
    for verb in ["report m.covary -o x.html", "impute m.covary -o x.csv"] {
        let said = refuse(verb);
        assert!(said.contains("is a model that `covary fit` wrote") && said.contains("--matrix correlation"));
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

#[test]
fn scores_and_rows_are_drawn_and_come_back() {
    let folder = folder_with_examples();
    let root = folder.path();
    let read = |name: &str| {
        covary::io::csv::read(fs::File::open(root.join(name)).unwrap()).unwrap().dataset().values().clone()
    };
    let table = covary::io::csv::read(fs::File::open(root.join("examples/wine_gaps.csv")).unwrap()).unwrap();
    succeed(root, "fit -q examples/wine_gaps.csv --components 2 -o m.covary");
    let kept = learned(root, "m.covary");
    let drawn = kept.draw_scores(table.dataset(), 7).unwrap().values;
    for threads in ["1", "3"] {
        let call = format!(
            "transform -q m.covary examples/wine_gaps.csv --draw --seed 7 --threads {threads} -o d.csv"
        );
        succeed(root, &call);
        assert_eq!(read("d.csv"), drawn);
        let call = format!(
            "reconstruct -q m.covary --from-scores d.csv --draw --seed 5 --threads {threads} -o t.csv"
        );
        succeed(root, &call);
        assert_eq!(read("t.csv"), kept.rows_of(&drawn, None, Some(5)).unwrap());
    }
    succeed(root, "transform -q m.covary examples/wine_gaps.csv --coordinates projection -o z.csv");
    succeed(root, "reconstruct -q m.covary z.csv --from-scores --coordinates projection -o p.csv");
    succeed(root, "transform -q m.covary p.csv --coordinates projection -o again.csv");
    let (z, again) = (read("z.csv"), read("again.csv"));
    assert!(z.as_slice().iter().zip(again.as_slice()).all(|(a, b)| (a - b).abs() < 1e-9));
    succeed(root, "reconstruct -q m.covary examples/wine_gaps.csv --orthogonal -o q.csv");
    let (p, q) = (read("p.csv"), read("q.csv"));
    assert!(p.as_slice().iter().zip(q.as_slice()).all(|(a, b)| (a - b).abs() < 1e-9 * (1.0 + b.abs())));
    for (call, why) in [
        (
            "transform m.covary examples/wine_gaps.csv --draw --coordinates projection",
            "--draw goes with posterior scores",
        ),
        (
            "reconstruct m.covary z.csv --from-scores --draw --coordinates projection",
            "--draw goes with posterior scores",
        ),
        ("reconstruct m.covary examples/wine_gaps.csv --from-scores", "component_1"),
    ] {
        let said = run_in(root, &call.split_whitespace().collect::<Vec<_>>(), b"");
        assert!(said.code != Some(0) && said.err.contains(why), "{call}: {}", said.err);
    }
}

#[test]
fn exact_densities_and_the_prior_mean_by_the_command() {
    let folder = folder_with_examples();
    let root = folder.path();
    let table = covary::io::csv::read(fs::File::open(root.join("examples/wine_gaps.csv")).unwrap()).unwrap();
    succeed(root, "fit -q examples/wine_gaps.csv --model bpca --components 3 -o b.covary");
    let exact = learned(root, "b.covary").exact_log_density(table.dataset(), 300, 2).unwrap();
    succeed(
        root,
        "score -q b.covary examples/wine_gaps.csv --bare --predictive exact --draws 300 --seed 2 -o s.csv",
    );
    let scored = covary::io::csv::read(fs::File::open(root.join("s.csv")).unwrap()).unwrap();
    assert_eq!(scored.column_names()[..3], ["log_likelihood", "standard_error", "n_observed"]);
    let values = scored.dataset().values();
    assert_eq!(values.column(0), exact.iter().map(|e| e.value).collect::<Vec<_>>());
    assert_eq!(values.column(1), exact.iter().map(|e| e.standard_error).collect::<Vec<_>>());
    succeed(root, "fit -q examples/wine_gaps.csv --components 2 -o m.covary");
    let said = run_in(root, &["score", "m.covary", "examples/wine_gaps.csv", "--predictive", "exact"], b"");
    assert!(said.code == Some(2) && said.err.contains("--inference structured"), "{}", said.err);

    let call = "fit -q examples/wine_gaps.csv --model bpca --components 2 --columns alcohol,ash,hue --option mean_precision=1000000 --option";
    let arguments: Vec<&str> =
        call.split_whitespace().chain(["prior_mean=[1, 2, 3]", "-o", "p.covary"]).collect();
    assert_eq!(run_in(root, &arguments, b"").code, Some(0));
    let mean = learned(root, "p.covary").linear().unwrap().model.mean().to_vec();
    assert!(mean.iter().zip([1.0, 2.0, 3.0]).all(|(a, b)| (a - b).abs() < 0.01), "{mean:?}");
}
