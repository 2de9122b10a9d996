//! `covary report`: facts as other verbs find them, one page whatever the table, the same bytes twice.
//! How the page looks and works is tried in a browser (`crates/covary-report/tests/browser`).

use super::{folder_with_examples, run_in, succeed};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn facts(root: &Path, command: &str) -> Value {
    serde_json::from_str(&succeed(root, command).out).expect("JSON")
}

#[test]
fn the_facts_are_those_of_the_other_verbs() {
    let folder = folder_with_examples();
    let root = folder.path();
    let report = facts(root, "report -q examples/wine_gaps.csv --json -o report.html");
    succeed(root, "fit -q examples/wine_gaps.csv -o wine.covary");
    let fitted = facts(root, "inspect wine.covary --json");
    assert_eq!(report["model"]["n_components"], fitted["n_components"]);
    assert_eq!(report["model"]["shares"], fitted["explained_variance_ratio"]);
    assert_eq!(report["model"]["objective_value"], fitted["log_likelihood"]);
    succeed(root, "score -q wine.covary examples/wine_gaps.csv --bare -o odd.csv");
    let scored = fs::read_to_string(root.join("odd.csv")).expect("written");
    let names: Vec<&str> = scored.lines().next().expect("names").split(',').collect();
    for odd in report["odd_rows"]["rows"].as_array().expect("rows") {
        let row = odd["row"].as_u64().expect("a row") as usize;
        let numbers: Vec<&str> = scored.lines().nth(row).expect("a row").split(',').collect();
        let at = names.iter().position(|n| *n == "t_squared").expect("T²");
        assert_eq!(odd["t_squared"].as_f64(), numbers[at].parse().ok(), "row {row}");
    }
}

#[test]
fn imputed_values_and_their_check_are_those_of_impute() {
    let folder = folder_with_examples();
    let root = folder.path();
    for options in ["", "--model ppca", "--components 3", "--model fa --standardize=false --seed 5"] {
        let report =
            facts(root, &format!("report -q examples/wine_gaps.csv {options} --json -o report.html"));
        let impute = "--json -o filled.csv --cells cells.csv";
        let filled = facts(root, &format!("impute -q examples/wine_gaps.csv {options} {impute}"));
        assert_eq!(report["check"]["rmse"], filled["model"]["check"]["rmse"], "{options}");
        let coverage = |facts: &Value| -> Vec<f64> {
            let all = facts["coverage"].as_array().expect("levels");
            all.iter().map(|c| c["share"].as_f64().expect("a share")).collect()
        };
        assert_eq!(coverage(&report["check"]), coverage(&filled["model"]["check"]), "{options}");
        assert_eq!(report["filled"]["n_filled"], filled["n_filled"], "{options}");
        assert_eq!(report["table"]["n_gaps"], filled["data"]["n_gaps"], "{options}");
        assert!(report["filled"]["n_calibrated"].as_u64().is_some_and(|n| n > 100), "{options}");
        // Every cell of the list of `impute` is among the report's, with the same numbers.
        let cells = report["filled"]["cells"].as_array().expect("cells");
        let listed = fs::read_to_string(root.join("cells.csv")).expect("written");
        assert_eq!(cells.len(), listed.lines().count() - 1);
        for line in listed.lines().skip(1) {
            let words: Vec<&str> = line.split(',').collect();
            let same = |cell: &&Value| {
                cell["row"].as_u64() == words[0].parse().ok() && cell["column"].as_str() == Some(words[1])
            };
            let cell = cells.iter().find(same).unwrap_or_else(|| panic!("no {line}"));
            for (name, word) in ["mean", "sd", "lower", "upper"].iter().zip(&words[3..]) {
                assert_eq!(cell[name].as_f64(), word.parse().ok(), "{name} of {line}, {options}");
            }
        }
        // The least certain come first.
        let of = |c: &Value| c["uncertainty"].as_f64().expect("a number");
        let uncertainty: Vec<f64> = cells.iter().map(of).collect();
        assert!(uncertainty.is_sorted_by(|a, b| a >= b), "{options}");
    }
}

#[test]
fn a_page_is_the_same_twice_on_any_number_of_threads_and_through_a_pipe() {
    let folder = folder_with_examples();
    let root = folder.path();
    succeed(root, "report -q examples/wine_gaps.csv -o page.html");
    let first = fs::read_to_string(root.join("page.html")).expect("written");
    succeed(root, "report -q examples/wine_gaps.csv -o page.html");
    assert_eq!(fs::read_to_string(root.join("page.html")).expect("written"), first);
    let piped = succeed(root, "report -q examples/wine_gaps.csv --threads 1").out;
    // All but the command that it names.
    let body = |page: &str| page.split("To reproduce this page").next().map(str::to_owned);
    assert_eq!(body(&piped), body(&first));
    assert!(
        first.starts_with("<!DOCTYPE html>") && !first.contains("http://") && !first.contains("https://")
    );
}

#[test]
fn every_model_has_a_page() {
    let folder = folder_with_examples();
    let root = folder.path();
    for (flags, why) in [
        ("--model pca --components 2", "asked"),
        ("--model fa --components 3 --rotation promax", "asked"),
        ("--model gaussian", "full-covariance"),
    ] {
        let report = facts(root, &format!("report -q examples/wine_gaps.csv {flags} --json -o a.html"));
        assert_eq!(report["model"]["why"], why, "{flags}");
    }
    let report = facts(root, "report -q examples/wine_gaps.csv --components 0.5 --json -o a.html");
    assert_eq!(report["model"]["why"]["share"], 0.5);
    let report = facts(root, "report -q examples/wine_gaps.csv --model bpca --json -o a.html");
    assert_eq!(report["model"]["why"]["pruned"]["offered"], 12);
    assert_eq!(report["model"]["parameter_uncertainty"], "posterior");
    assert!(fs::read_to_string(root.join("a.html")).expect("written").contains("data-figure=\"relevance\""));
}

#[test]
fn every_family_has_a_page_and_says_what_is_special_to_it() {
    let folder = folder_with_examples();
    let root = folder.path();
    let views = "--view a=alcohol,ash,hue,magnesium --view b=proline,flavanoids,color_intensity,malic_acid";
    for (table, flags, structure, figure, heading) in [
        (
            "wine_gaps",
            "--model mppca --mixtures 3 --components 2",
            "groups",
            "mixture",
            "What the groups are",
        ),
        ("wine", "--model gmm --mixtures 2", "groups", "mixture", "What the groups are"),
        ("wine_gaps", "--model mfa --mixtures 2 --components 1", "groups", "mixture", "What the groups are"),
        (
            "wine_gaps",
            "--target cultivar --components 2",
            "groups",
            "mixture",
            "What tells the classes apart",
        ),
        ("wine", "--target cultivar --components 2", "groups", "mixture", "What tells the classes apart"),
        ("wine", "--model ica --components 3", "sources", "sources", "What the sources are"),
        (
            "wine_gaps",
            "--model ica --inference noisy --components 2",
            "sources",
            "sources",
            "What the sources are",
        ),
        (
            "wine_gaps",
            &format!("--model gfa --components 4 {views}"),
            "views",
            "views",
            "What the views share",
        ),
        ("wine_gaps", &format!("--model pcca {views}"), "views", "views", "What the views share"),
        (
            "growth",
            "--model fpca --curve child --time age",
            "curves",
            "eigenfunctions",
            "What the curves have in common",
        ),
        (
            "wine_gaps",
            "--model spca --components 2",
            "sparse",
            "path",
            "Which columns the components are made of",
        ),
        (
            "wine_gaps",
            "--model bspca --components 2",
            "sparse",
            "hinton",
            "Which columns the components are made of",
        ),
    ] {
        let call = format!("report -q examples/{table}.csv {flags} --json -o a.html");
        let report = facts(root, &call);
        assert!(
            report["structure"][structure].is_object() || report["structure"][structure].is_array(),
            "{call}"
        );
        let page = fs::read_to_string(root.join("a.html")).expect("written");
        assert!(page.contains(heading) && page.contains(&format!("data-figure=\"{figure}\"")), "{call}");
        let gaps = report["table"]["n_gaps"].as_u64().expect("a number");
        if gaps > 0 {
            let filled = &report["filled"];
            assert_eq!(
                filled["n_filled"].as_u64().expect("filled") + filled["n_left"].as_u64().expect("left"),
                gaps,
                "{call}"
            );
        }
    }
    // Classes of complete rows are assigned as `score` assigns them.
    let report = facts(root, "report -q examples/wine.csv --target cultivar --components 2 --json -o a.html");
    let assigned = &report["structure"]["groups"]["assigned"];
    let all: u64 = assigned
        .as_array()
        .expect("rows")
        .iter()
        .flat_map(|r| r.as_array().expect("cells"))
        .filter_map(Value::as_u64)
        .sum();
    assert_eq!(all, 178);
    succeed(root, "fit -q examples/wine.csv --target cultivar --components 2 -o c.covary");
    succeed(root, "score -q c.covary examples/wine.csv -o s.csv");
    let text = fs::read_to_string(root.join("s.csv")).expect("written");
    let known: Vec<String> = fs::read_to_string(root.join("examples/wine.csv"))
        .expect("the table")
        .lines()
        .skip(1)
        .map(|line| line.rsplit(',').next().expect("a class").to_owned())
        .collect();
    let head: Vec<&str> = text.lines().next().expect("a head").split(',').collect();
    let at = head.iter().position(|name| *name == "predicted").unwrap_or_else(|| panic!("{head:?}"));
    let right = text
        .lines()
        .skip(1)
        .zip(&known)
        .filter(|(line, own)| line.split(',').nth(at) == Some(own.as_str()))
        .count() as u64;
    let diagonal: u64 = (0..3).filter_map(|k| assigned[k][k].as_u64()).sum();
    assert_eq!(diagonal, right);
}

#[test]
fn a_page_about_rows_in_time_says_what_the_other_verbs_do() {
    let folder = folder_with_examples();
    let root = folder.path();
    let flags = "examples/months.csv --model dfm --time month --season 12";
    let report = facts(root, &format!("report -q {flags} --json -o months.html"));
    let time = &report["time"];
    succeed(root, &format!("fit -q {flags} -o months.covary"));
    let model = facts(root, "inspect months.covary --json");
    assert_eq!((&time["transition"], &time["order"]), (&model["transition"], &model["order"]));
    assert_eq!(report["model"]["objective_value"], model["objective"]["value"]);
    let (modulus, half) = (time["roots"][0]["modulus"].as_f64(), time["roots"][0]["half_life"].as_f64());
    let (modulus, half) = (modulus.expect("a root"), half.expect("it returns"));
    assert!((modulus - model["spectral_radius"].as_f64().expect("a number")).abs() < 1e-9);
    assert!((modulus.powf(half) - 0.5).abs() < 1e-12);
    for (name, value) in
        [("column", "month"), ("steps", "monthly"), ("first", "1981-01"), ("last", "2000-12")]
    {
        assert_eq!(time[name], value);
    }
    assert_eq!(
        (&time["n_empty"], &time["n_sequences"], &time["n_steps"]),
        (&3.into(), &1.into(), &12.into())
    );
    // The forecast of the next season is that of `covary forecast`, the surprises those of `covary score`.
    succeed(root, "forecast -q months.covary examples/months.csv --steps 12 -o ahead.csv");
    let ahead = fs::read_to_string(root.join("ahead.csv")).expect("written");
    assert_eq!(ahead.lines().count() - 1, time["ahead"].as_array().expect("forecasts").len());
    for (k, line) in ahead.lines().skip(1).enumerate() {
        let (words, fact) = (line.split(',').collect::<Vec<_>>(), &time["ahead"][k]);
        assert_eq!((fact["time"].as_str(), fact["column"].as_str()), (Some(words[0]), Some(words[1])));
        for (name, word) in ["mean", "sd", "lower", "upper"].iter().zip(&words[2..]) {
            assert_eq!(fact[name].as_f64(), word.parse().ok(), "{name} of {line}");
        }
    }
    succeed(root, "score -q months.covary examples/months.csv -o odd.csv");
    let scored = fs::read_to_string(root.join("odd.csv")).expect("written");
    let names: Vec<&str> = scored.lines().next().expect("names").split(',').collect();
    let at = |name: &str| names.iter().position(|n| *n == name).expect("a column");
    let tail =
        |line: &&str| line.split(',').nth(at("tail_probability")).and_then(|t| t.parse().ok()).unwrap_or(1.0);
    let least = scored.lines().skip(1).map(|line| tail(&line)).fold(1.0, f64::min);
    let rows = time["surprises"]["rows"].as_array().expect("rows");
    assert_eq!(rows[0]["tail_probability"], least);
    for odd in rows {
        let line: Vec<&str> = scored
            .lines()
            .nth(odd["row"].as_u64().expect("a row") as usize)
            .expect("a row")
            .split(',')
            .collect();
        assert_eq!(odd["time"].as_str(), Some(line[at("month")]));
        assert_eq!(odd["mahalanobis"].as_f64(), line[at("mahalanobis")].parse().ok());
    }
    // What was tried is what `select` shows, and the choice was made on blocks of time.
    assert_eq!(report["model"]["why"]["blocks"]["horizon"], 12);
    assert!(time["tried"].as_array().expect("candidates").len() > 3);
    assert!(
        report["not_done"]
            .as_array()
            .expect("sentences")
            .iter()
            .all(|s| !s.as_str().unwrap().contains("independent"))
    );
    let page = fs::read_to_string(root.join("months.html")).expect("written");
    assert!(page.contains("data-figure=\"forecast\"") && page.contains("data-figure=\"factors\""));
    assert!(
        page.contains("The factors in time, and what comes") && page.contains("Rows that were not expected")
    );

    // Rows that are only counted, several sequences, and a column that never varies.
    let row = |i: usize| {
        format!(
            "{},{},{},{},5\n",
            i % 2,
            i / 2,
            (i as f64 / 9.0).sin(),
            (i as f64 / 9.0).cos() + (i % 7) as f64 / 9.0
        )
    };
    let text = "site,t,a,b,c\n".to_owned() + &(0..120).map(row).collect::<String>();
    fs::write(root.join("sites.csv"), text).expect("writable");
    let report =
        facts(root, "report -q sites.csv --model dfm --time t --group site --components 1 --json -o a.html");
    assert_eq!(
        (&report["time"]["n_sequences"], &report["time"]["ahead"][0]["sequence"]),
        (&2.into(), &"0".into())
    );
    let report = facts(root, "report -q examples/wine_gaps.csv --model dfm --components 1 --json -o a.html");
    assert_eq!((&report["time"]["column"], &report["time"]["last"]), (&Value::Null, &"178".into()));
}

#[test]
fn a_table_that_cannot_be_modeled_gets_a_page_that_says_why() {
    let folder = folder_with_examples();
    let root = folder.path();
    for (table, words) in [("a,b\nx,y\nz,w\n", "is not a number"), ("a,b\n1,2\n1,2\n1,2\n", "constant")] {
        fs::write(root.join("t.csv"), table).expect("writable");
        let said = run_in(root, &["report", "t.csv", "--json", "-o", "t.html"], b"");
        assert_eq!(said.code, Some(1), "{}", said.err);
        let found: Value = serde_json::from_str(&said.out).expect("JSON");
        assert!(said.err.contains(words) && found["refusal"].as_str().expect("why").contains(words));
        assert!(fs::read_to_string(root.join("t.html")).expect("written").contains("Why there is no model"));
    }
    // What cannot be read has no page, and an older one stays.
    fs::write(root.join("t.csv"), "a,b\n1,2\n1\n").expect("writable");
    let before = fs::read(root.join("t.html")).expect("written");
    assert_eq!(run_in(root, &["report", "t.csv", "-o", "t.html"], b"").code, Some(1));
    assert_eq!(fs::read(root.join("t.html")).expect("still there"), before);
    let asked = ["report", "examples/wine.csv", "--components", "50", "-o", "t.html"];
    let said = run_in(root, &asked, b"");
    assert!(said.code == Some(1) && said.err.contains("too many"), "{}", said.err);
    assert_eq!(fs::read(root.join("t.html")).expect("still there"), before);
    let said = run_in(root, &["report", "t.csv", "--json"], b"");
    assert!(said.code == Some(2) && said.err.contains("-o"));
}

#[test]
fn limitations_follow_from_the_table() {
    let folder = folder_with_examples();
    let root = folder.path();
    // Three rows that are not of the others' kind, a code for a gap, a column without a value.
    let row = |i: i32| {
        let (x, wobble) = (f64::from(i * 37 % 120) / 20.0 - 3.0, f64::from(i * 61 % 97) / 97.0);
        let c = if i % 15 == 0 { -999.0 } else { 2.0 * x + wobble };
        let d = if i < 3 { 60.0 } else { x - wobble };
        format!("{x},{},{c},{d},\n", wobble - x)
    };
    let table = std::iter::once("a,b,c,d,empty\n".to_owned()).chain((0..120).map(row)).collect::<String>();
    fs::write(root.join("t.csv"), table).expect("writable");
    let report = facts(root, "report -q t.csv --json --max-iter 1 --inference em --components 1 -o t.html");
    let doubts: Vec<&str> =
        report["doubts"].as_array().expect("doubts").iter().map(|d| d.as_str().expect("words")).collect();
    for words in ["did not converge", "-999 stands in 8 cells", "no value at all", "too far from the model"] {
        assert!(doubts.iter().any(|d| d.contains(words)), "{words}: {doubts:#?}");
    }
    let aside = &report["table"]["set_aside"][0];
    assert!(aside["name"] == "empty" && report["filled"]["n_left"] == 120);
}
