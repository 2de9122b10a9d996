//! Mixtures and classes by the command.

use super::{folder_with_examples, learned, run_in, succeed};
use covary::Density;
use covary::io::{Table, csv};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn read(folder: &Path, name: &str) -> Table {
    csv::read(fs::File::open(folder.join(name)).expect("written")).expect("a table")
}

fn saved(folder: &Path, name: &str) -> covary::learned::MixtureFit {
    learned(folder, name).mixture().expect("a mixture").clone()
}

#[test]
fn every_verb_takes_a_mixture_or_says_why_not() {
    let folder = folder_with_examples();
    let root = folder.path();
    let said = succeed(
        root,
        "fit examples/wine_gaps.csv --model mppca --mixtures 3 --components 2 -o groups.covary",
    );
    assert!(
        said.err.contains("fitted a mixture of probabilistic PCAs, 3 models, 2 components each"),
        "{}",
        said.err
    );
    let (kept, data) = (saved(root, "groups.covary"), read(root, "examples/wine_gaps.csv"));
    let data = data.dataset();

    succeed(root, "score -q groups.covary examples/wine_gaps.csv -o odd.csv");
    let odd = read(root, "odd.csv");
    let columns = ["cultivar", "log_likelihood", "n_observed", "model", "probability_1"];
    assert_eq!(odd.column_names()[..5], columns);
    assert_eq!(odd.dataset().values().column(0), kept.mixture.log_density(data).unwrap());
    let r = kept.mixture.responsibilities(data).unwrap();
    assert_eq!(odd.dataset().values().column(5), r.column(2));

    succeed(root, "transform -q groups.covary examples/wine_gaps.csv -o scores.csv");
    let scores = read(root, "scores.csv");
    assert_eq!(scores.column_names()[5..7], ["1_component_1", "1_component_2"]);
    assert_eq!(scores.n_columns(), 1 + 1 + 3 + 6);

    succeed(root, "impute -q examples/wine_gaps.csv --model groups.covary -o filled.csv");
    let filled = read(root, "filled.csv");
    assert_eq!(filled.dataset().n_gaps(), 0);
    assert_eq!(*filled.dataset().values(), *kept.mixture.impute(data).unwrap().values());

    succeed(root, "sample -q groups.covary --rows 7 -o new.csv");
    assert_eq!(read(root, "new.csv").dataset().n_rows(), 7);
    let said = succeed(root, "inspect groups.covary");
    assert!(
        said.out.starts_with("mixture of probabilistic PCAs, 3 models, 2 components each"),
        "{}",
        said.out
    );
    let json: Value = serde_json::from_str(&succeed(root, "inspect groups.covary --json").out).unwrap();
    assert_eq!(json["models"].as_array().unwrap().len(), 3);

    for verb in
        ["reconstruct groups.covary examples/wine_gaps.csv", "plot groups.covary --kind scree -o a.svg"]
    {
        let said = run_in(root, &verb.split_whitespace().collect::<Vec<_>>(), b"");
        assert_eq!(said.code, Some(1), "{verb}: {}", said.err);
        assert!(said.err.contains("holds a mixture, and this asks for one model"), "{}", said.err);
    }
}

#[test]
fn impute_fits_a_mixture_and_checks_it() {
    let folder = folder_with_examples();
    let said = succeed(
        folder.path(),
        "impute examples/wine_gaps.csv --model gmm --mixtures 2 --draws 1 -o filled.csv",
    );
    assert!(said.err.contains("checked on") && said.err.contains("hidden cells: RMSE"), "{}", said.err);
    assert_eq!(read(folder.path(), "filled.csv").dataset().n_gaps(), 0);
    assert_eq!(read(folder.path(), "filled-1.csv").dataset().n_gaps(), 0);
}

#[test]
fn a_check_is_kept_with_the_mixture_and_shown() {
    let folder = folder_with_examples();
    let root = folder.path();
    let said = succeed(
        root,
        "fit examples/wine_gaps.csv --model mppca --mixtures 2 --components 2 --check -o a.covary",
    );
    assert!(said.err.contains("hidden cells: RMSE"), "{}", said.err);
    let check = learned(root, "a.covary").check.expect("was asked for");
    assert!(check.n_hidden > 50 && check.skill > 0.0 && check.skill < 1.0, "{check:?}");
    let said = succeed(root, "inspect a.covary");
    assert!(said.out.contains(&format!("checked on {} hidden cells", check.n_hidden)), "{}", said.out);
    let json: Value = serde_json::from_str(&succeed(root, "inspect a.covary --json").out).unwrap();
    assert_eq!(json["check"]["n_hidden"], check.n_hidden);
}

#[test]
fn sizes_stand_in_one_table_with_a_recommendation() {
    let folder = folder_with_examples();
    let root = folder.path();
    let call = "select examples/wine.csv --model mppca --max-mixtures 3 --max-components 2";
    let said = succeed(root, call);
    let header: Vec<&str> = said.out.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header[..5], ["models", "components", "parameters", "log-likelihood", "BIC"]);
    assert_eq!(said.out.lines().take_while(|line| !line.is_empty()).count(), 7, "{}", said.out);
    assert!(said.out.contains("Recommended: ") && said.out.contains(", the least BIC."), "{}", said.out);

    let json: Value = serde_json::from_str(&succeed(root, &format!("{call} --json")).out).unwrap();
    let sizes = json["by_size"].as_array().unwrap();
    let least = sizes.iter().min_by(|a, b| a["bic"].as_f64().unwrap().total_cmp(&b["bic"].as_f64().unwrap()));
    assert_eq!(json["recommended"]["n_mixtures"], least.unwrap()["n_mixtures"]);
    assert_eq!(json["recommended"]["n_components"], least.unwrap()["n_components"]);
    assert!(sizes.iter().all(|at| at["held_out"]["mean"].as_f64().is_some()));

    // Of one size, it is the largest; with every component a column allows, none is beyond.
    let one = "select examples/wine.csv --model mppca --max-mixtures 1 --max-components 1";
    let beyond = "Both numbers are the largest tried; --max-mixtures and --max-components raise them.";
    assert!(succeed(root, one).out.contains(beyond));
    let json: Value = serde_json::from_str(&succeed(root, &format!("{one} --json")).out).unwrap();
    assert_eq!(json["largest_tried"], serde_json::json!({ "n_mixtures": true, "n_components": true }));
    assert!(json["sentence"].as_str().unwrap().ends_with(beyond));
    let all = succeed(root, &format!("{one} --columns ash,hue"));
    assert!(all.out.contains("The number of models is the largest tried; --max-mixtures raises it."));
    let gmm =
        succeed(root, "select -q examples/wine.csv --model gmm --max-mixtures 2 --columns ash,hue,alcohol");
    assert_eq!(gmm.out.lines().take_while(|line| !line.is_empty()).count(), 3, "{}", gmm.out);
}

#[test]
fn the_size_is_chosen_by_bic_and_threads_leave_no_trace() {
    let folder = folder_with_examples();
    let root = folder.path();
    let fit = "fit examples/wine.csv --model mppca --components 2";
    let said = succeed(root, &format!("{fit} --threads 1 -o one.covary"));
    assert!(said.err.contains("chose the size of least BIC among 6 that were tried"), "{}", said.err);
    succeed(root, &format!("{fit} --threads 2 -o two.covary"));
    assert_eq!(fs::read(root.join("one.covary")).unwrap(), fs::read(root.join("two.covary")).unwrap());
}

/// A group on a line and one on a plane of three directions.
#[test]
fn every_model_gets_its_own_components() {
    use covary::data::{Shape, simulate};
    let folder = folder_with_examples();
    let root = folder.path();
    let draw = |q: usize| simulate::ppca(Shape { rows: 120, columns: 7, n_components: q }, 40 + q as u64).0;
    let (one, three) = (draw(1), draw(3));
    let mut text = "a,b,c,d,e,f,g\n".to_owned();
    for (table, far) in [(&one, 0.0), (&three, 15.0)] {
        for i in 0..120 {
            let cells: Vec<String> = table.row(i).iter().map(|v| format!("{:.6}", v + far)).collect();
            text.extend([cells.join(","), "\n".to_owned()]);
        }
    }
    fs::write(root.join("groups.csv"), text).unwrap();
    let fit = "fit groups.csv --model mppca --standardize=false --mixtures 2";
    let said = succeed(root, &format!("{fit} --threads 1 -o one.covary"));
    assert!(said.err.contains("and the components of each model: BIC"), "{}", said.err);
    succeed(root, &format!("{fit} --threads 2 -q -o two.covary"));
    assert_eq!(fs::read(root.join("one.covary")).unwrap(), fs::read(root.join("two.covary")).unwrap());
    let mut found = saved(root, "one.covary").components();
    let shown = succeed(root, "inspect one.covary").out;
    let words = format!("2 models, {} and {} components", found[0], found[1]);
    assert!(shown.contains(&words), "{shown}");
    assert!(shown.lines().any(|line| line.trim_start().starts_with("components  ")), "{shown}");
    found.sort_unstable();
    assert_eq!(found, [1, 3]);
    // Scores of each model are as many as its components.
    succeed(root, "transform -q one.covary groups.csv -o scores.csv");
    let names = read(root, "scores.csv").column_names().to_vec();
    assert_eq!(names.iter().filter(|name| name.contains("_component_")).count(), 4, "{names:?}");
}

#[test]
fn a_known_class_imputes_by_its_own_model() {
    let folder = folder_with_examples();
    let root = folder.path();
    let impute = "impute examples/wine_gaps.csv --model ppca --components 3";
    let said = succeed(root, &format!("{impute} --target cultivar --threads 1 --cells a.csv -o one.csv"));
    assert!(said.err.contains("hidden cells chose that a row counts"), "{}", said.err);
    assert!(said.err.contains("checked on"), "{}", said.err);
    succeed(root, &format!("{impute} --target cultivar --threads 2 -q -o two.csv"));
    assert_eq!(fs::read(root.join("one.csv")).unwrap(), fs::read(root.join("two.csv")).unwrap());
    // A model of classes imputes a row by the class that the table names.
    succeed(root, "fit -q examples/wine_gaps.csv --target cultivar --components 3 -o classes.covary");
    succeed(root, "impute -q examples/wine_gaps.csv --model classes.covary --cells known.csv -o filled.csv");
    let text = fs::read_to_string(root.join("examples/wine_gaps.csv")).unwrap();
    let line = |line: &str| line.rsplit_once(',').map_or(String::new(), |(rest, _)| rest.to_owned() + "\n");
    fs::write(root.join("unnamed.csv"), text.lines().map(line).collect::<String>()).unwrap();
    succeed(root, "impute -q unnamed.csv --model classes.covary --cells unknown.csv -o filled.csv");
    assert_ne!(fs::read(root.join("known.csv")).unwrap(), fs::read(root.join("unknown.csv")).unwrap());

    let refused = |call: &str, why: &str| {
        let said = run_in(root, &call.split_whitespace().collect::<Vec<_>>(), b"");
        assert_eq!(said.code, Some(2), "{call}: {}", said.err);
        assert!(said.err.contains(why), "{call}: {}", said.err);
    };
    let data = "impute examples/wine_gaps.csv --target cultivar -o filled.csv";
    refused(&format!("{data} --model auto"), "name which: --model pca, ppca, fa or gaussian");
    refused(&format!("{data} --model mppca"), "--target goes with --model pca, ppca, fa or gaussian");
    refused(&format!("{data} --model classes.covary"), "leave out --target");
}

#[test]
fn classes_are_learned_and_predicted() {
    let folder = folder_with_examples();
    let root = folder.path();
    succeed(root, "fit -q examples/wine_gaps.csv --target cultivar --components 3 -o classes.covary");
    let kept = saved(root, "classes.covary");
    assert_eq!(kept.classes.as_ref().unwrap().names, ["c1", "c2", "c3"]);
    succeed(root, "score -q classes.covary examples/wine_gaps.csv -o predicted.csv");
    let table = read(root, "predicted.csv");
    let columns = ["cultivar", "log_likelihood", "n_observed", "predicted", "probability_c1"];
    assert_eq!(table.column_names()[..5], columns);
    let right = (0..table.n_rows()).filter(|&i| table.text(i, 0) == table.text(i, 3)).count();
    assert!(right >= 170, "{right} of 178");
    succeed(root, "sample -q classes.covary --rows 5 -o new.csv");
    assert!(read(root, "new.csv").column_names().contains(&"cultivar".to_owned()));
}

#[test]
fn wrong_calls_and_tables_are_named() {
    let folder = folder_with_examples();
    let refused = |call: &str, code: i32, why: &str| {
        let said = run_in(folder.path(), &call.split_whitespace().collect::<Vec<_>>(), b"");
        assert_eq!(said.code, Some(code), "{call}: {}", said.err);
        assert!(said.err.contains(why), "{call}: {}", said.err);
    };
    let fit = "fit -q examples/wine.csv -o a.covary";
    refused(&format!("{fit} --mixtures 2"), 2, "--mixtures goes with --model mppca, mfa or gmm");
    refused(&format!("{fit} --model mppca --mixtures 0"), 2, "give a whole number from 1, or `auto`");
    refused(&format!("{fit} --model mppca --mixtures 100 --components 2"), 1, "100 models are too many");
    refused(
        &format!("{fit} --model mppca --components 0.9"),
        2,
        "--components as a share of the variance goes with",
    );
    refused(
        &format!("{fit} --model mfa --inference em"),
        2,
        "`em` does not lead to --model mfa; give one of mixture-em",
    );
    refused(&format!("{fit} --model mppca --option color=3"), 2, "mixture-em has no option `color`");
    refused(
        &format!("{fit} --model mppca --rotation varimax"),
        2,
        "--rotation goes with --model pca, ppca, tppca, fa, bpca, bspca or gaussian",
    );
    refused(&format!("{fit} --target cultivar --check"), 2, "not with --target");
    refused("select examples/wine.csv --max-mixtures 3", 2, "--max-mixtures goes with --model mppca");
    refused("select examples/wine.csv --model mppca --sample", 2, "--sample goes with --model ppca");
    refused(
        "plot m.covary examples/wine.csv --kind mixture --color cultivar",
        2,
        "--color goes with --kind scores",
    );
    refused("select examples/wine.csv --model fa", 2, "give one of these");
    fs::write(folder.path().join("empty.csv"), "a,b\n,\n,\n,\n").unwrap();
    refused("fit -q empty.csv --model mppca --mixtures 2 -o a.covary", 1, "empty.csv");
    refused(
        &format!("{fit} --model mppca --target cultivar"),
        2,
        "--target goes with --model pca, ppca, fa or gaussian, not with mppca",
    );
    refused(&format!("{fit} --model bpca --target cultivar"), 2, "not with bpca");
    refused(&format!("{fit} --target color"), 1, "color");
    fs::write(folder.path().join("one.csv"), "a,b,kind\n1,2,x\n2,3,x\n4,4,x\n5,7,x\n").unwrap();
    refused("fit -q one.csv --target kind --components 1 -o a.covary", 1, "all rows are of class `x`");
    fs::write(folder.path().join("two.csv"), "a,b,kind\n1,2,x\n2,3,x\n4,4,x\n5,7,y\n").unwrap();
    refused("fit -q two.csv --target kind --components 1 -o a.covary", 1, "class `y`: only 1 row has");
}
