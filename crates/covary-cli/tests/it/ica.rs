//! Independent components by the command.

use super::{learned, run_in, succeed};
use covary::ica::amari_index;
use covary::io::{Table, csv};
use covary::model::Fill;
use covary::{Matrix, ica::Mixing};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// A saw-tooth, a pulse and a chirp: far from Gaussian, and functions of the row.
fn sources(n: usize) -> Matrix {
    Matrix::from_fn(n, 3, |i, k| {
        let x = i as f64;
        [(i % 19) as f64 / 19.0, (0.37 * x).sin().powi(9), (0.05 * x * x).sin()][k]
    })
}

/// Three pulses with heavy tails, the only ones that noisy sources are modeled with.
fn pulses(n: usize) -> Matrix {
    Matrix::from_fn(n, 3, |i, k| {
        let x = i as f64;
        [(0.37 * x).sin().powi(25), (1.7 * x).cos().powi(31), (0.05 * x * x).sin().powi(21)][k]
    })
}

fn mixing() -> Matrix {
    Matrix::from_rows(&[[1.0, 0.6, -0.3], [0.4, 1.0, 0.5], [-0.2, 0.3, 1.0], [0.5, -0.5, 0.4]])
}

/// A text table of these rows, with a column of labels before them; NaN is an empty cell.
fn write_table(path: &Path, rows: &Matrix) {
    let mut text = String::from("label");
    (1..=rows.n_columns()).for_each(|j| write!(text, ",c{j}").unwrap());
    for (i, row) in rows.rows().enumerate() {
        write!(text, "\nrow {i}").unwrap();
        for v in row {
            if v.is_nan() { text.push(',') } else { write!(text, ",{v:?}").unwrap() }
        }
    }
    fs::write(path, text + "\n").expect("a folder to write to");
}

fn folder_with_sound() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_table(&folder.path().join("sound.csv"), &sources(600).dot_t(&mixing()));
    let mut gaps = pulses(600).dot_t(&mixing());
    write_table(&folder.path().join("pulses.csv"), &gaps);
    (0..600).step_by(7).for_each(|i| gaps[(i, i % 4)] = f64::NAN);
    write_table(&folder.path().join("gaps.csv"), &gaps);
    folder
}

fn read(folder: &Path, name: &str) -> Table {
    csv::read(fs::File::open(folder.join(name)).expect("written")).expect("a table")
}

fn saved(folder: &Path, name: &str) -> covary::ica::Fit {
    learned(folder, name).sources().expect("sources").clone()
}

/// Refused with this exit status, saying why.
#[track_caller]
fn refused(folder: &Path, call: &str, code: i32, why: &str) {
    let said = run_in(folder, &call.split_whitespace().collect::<Vec<_>>(), b"");
    assert_eq!(said.code, Some(code), "{call}: {}", said.err);
    assert!(said.err.contains(why), "{call}: {}", said.err);
}

#[test]
fn mixed_sources_are_separated_end_to_end() {
    let folder = folder_with_sound();
    let root = folder.path();
    for (method, name, truth) in [
        ("fastica", "sound", sources(600)),
        ("maximum-likelihood", "sound", sources(600)),
        ("noisy", "pulses", pulses(600)),
    ] {
        let fit =
            format!("fit {name}.csv --model ica --components 3 --inference {method} -o {method}.covary");
        let said = succeed(root, &fit);
        assert!(said.err.contains("independent components, 3 sources"), "{}", said.err);
        assert!(said.err.contains(&format!(", by {method}: ")), "{}", said.err);
        succeed(root, &format!("transform -q {method}.covary {name}.csv -o sources.csv"));
        let table = read(root, "sources.csv");
        assert_eq!(table.column_names(), ["label", "source_1", "source_2", "source_3"]);
        // What was mixed, by what came out: a scaled permutation if every source is one of them.
        let got = table.dataset().values();
        let column = |m: &Matrix, k: usize| {
            let column = m.column(k);
            let mean = column.iter().sum::<f64>() / 600.0;
            column.into_iter().map(|v| v - mean).collect::<Vec<_>>()
        };
        let correlation = |i: usize, k: usize| {
            let (a, b) = (column(got, i), column(&truth, k));
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt()
        };
        let index = amari_index(&Matrix::from_fn(3, 3, correlation));
        assert!(index < 0.1, "{method}: {index}");
        // The table is of rank 3: the sources lead back.
        succeed(root, &format!("reconstruct -q {method}.covary {name}.csv -o back.csv"));
        let (back, whole) = (read(root, "back.csv"), read(root, &format!("{name}.csv")));
        let bound = if method == "noisy" { 0.3 } else { 1e-9 };
        for (a, b) in back.dataset().values().as_slice().iter().zip(whole.dataset().values().as_slice()) {
            assert!((a - b).abs() < bound, "{method}: {a} for {b}");
        }
    }
}

#[test]
fn threads_leave_no_trace() {
    let folder = folder_with_sound();
    let root = folder.path();
    for method in ["fastica", "maximum-likelihood", "noisy"] {
        for threads in [1, 2] {
            let fit = format!("fit -q sound.csv --model ica --components 3 --inference {method}");
            succeed(root, &format!("{fit} --threads {threads} -o {threads}.covary"));
            let transform = format!("transform -q {threads}.covary sound.csv --threads {threads}");
            succeed(root, &format!("{transform} -o {threads}.csv"));
        }
        for ending in ["covary", "csv"] {
            let bytes = |threads: usize| fs::read(root.join(format!("{threads}.{ending}"))).unwrap();
            assert!(bytes(1) == bytes(2), "{method}.{ending}");
        }
    }
}

#[test]
fn inspect_tells_what_each_source_is() {
    let folder = folder_with_sound();
    let root = folder.path();
    succeed(root, "fit -q sound.csv --model ica --inference maximum-likelihood -o a.covary");
    let said = succeed(root, "inspect a.covary").out;
    for words in [
        "independent components, 3 sources, 4 columns",
        "learned from 600 rows with 0 gaps (0.0 %), by maximum-likelihood: converged after",
        "share of the table's variance, and excess kurtosis",
        "light",
        "heavy",
        "c4",
    ] {
        assert!(said.contains(words), "`{words}` in\n{said}");
    }
    let json: Value = serde_json::from_str(&succeed(root, "inspect a.covary --json").out).unwrap();
    let kept = saved(root, "a.covary");
    assert_eq!(json["kurtosis"][1].as_f64().unwrap(), kept.kurtosis[1]);
    assert_eq!(json["unmixing"].as_array().unwrap().len(), 3);
    assert_eq!(
        (json["kind"].as_str(), json["method"]["options"]["sources"].as_str()),
        (Some("ica"), Some("extended"))
    );
    let share: f64 =
        json["explained_variance_ratio"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).sum();
    assert!((share - 1.0).abs() < 0.05, "sources of maximum likelihood are nearly uncorrelated: {share}");
    let found: Value =
        serde_json::from_str(&succeed(root, "fit -q sound.csv --model ica --json -o b.covary").out).unwrap();
    assert_eq!(found["model"]["n_components"], 3);
}

#[test]
fn options_reach_the_method() {
    let folder = folder_with_sound();
    let root = folder.path();
    succeed(
        root,
        "fit -q sound.csv --model ica --components 2 --prior contrast=exp --prior algorithm=deflation --max-iter 900 --tol 1e-9 --seed 5 -o a.covary",
    );
    let (record, kept) = (learned(root, "a.covary"), saved(root, "a.covary"));
    let option = |name: &str| record.method.options[name].as_str();
    assert_eq!((option("contrast"), option("algorithm")), ("exp", "deflation"));
    assert_eq!((option("max_iterations"), option("tolerance"), option("seed")), ("900", "1e-9", "5"));
    assert_eq!((record.seed, kept.model.n_components()), (5, 2));
    // A share of the variance is as many principal directions.
    succeed(root, "fit -q sound.csv --model ica --components 0.5 -o b.covary");
    assert!(saved(root, "b.covary").model.n_components() < 3);
}

#[test]
fn gaps_are_refused_with_the_way_out_or_taken_by_noisy_sources() {
    let folder = folder_with_sound();
    let root = folder.path();
    for method in ["fastica", "maximum-likelihood"] {
        let call = format!("fit -q gaps.csv --model ica --inference {method} -o a.covary");
        refused(root, &call, 1, "impute the table first");
        refused(root, &call, 1, "(--inference noisy, `covary impute`)");
    }
    succeed(root, "fit -q gaps.csv --model ica --inference noisy --components 3 -o noisy.covary");
    let Mixing::Noisy(model) = saved(root, "noisy.covary").model else { panic!("noisy was asked for") };
    succeed(root, "transform -q --bare noisy.covary gaps.csv -o sources.csv");
    let table = read(root, "gaps.csv");
    let data = table.dataset();
    assert_eq!(*read(root, "sources.csv").dataset().values(), model.transform(data).unwrap());
    succeed(root, "impute -q gaps.csv --model noisy.covary -o filled.csv");
    let filled = read(root, "filled.csv");
    assert_eq!(*filled.dataset().values(), *model.fill(data).unwrap().values());
    // Of rank 3 and noise-free, the cells that were hidden are known from the others.
    let truth = pulses(600).dot_t(&mixing());
    let errors = (0..600).step_by(7).map(|i| filled.dataset().values()[(i, i % 4)] - truth[(i, i % 4)]);
    let rmse = (errors.map(|e| e * e).sum::<f64>() / 86.0).sqrt();
    assert!(rmse < 0.2, "{rmse}");
    let said = succeed(root, "impute gaps.csv --model ica --inference noisy --components 3 -o other.csv");
    assert!(said.err.contains("hidden cells: RMSE") && said.err.contains("this flatters it"), "{}", said.err);
    assert_eq!(fs::read(root.join("other.csv")).unwrap(), fs::read(root.join("filled.csv")).unwrap());
    refused(root, "impute -q gaps.csv --model noisy.covary --draws 2 -o f.csv", 2, "--draws needs a density");
    // How many sources is found by hidden cells if it is not said.
    succeed(root, "fit -q gaps.csv --model ica --inference noisy --prior tied_noise=true -o auto.covary");
    assert_eq!(saved(root, "auto.covary").model.n_components(), 3);
}

#[test]
fn what_asks_for_a_density_says_what_to_do_instead() {
    let folder = folder_with_sound();
    let root = folder.path();
    succeed(root, "fit -q sound.csv --model ica -o exact.covary");
    succeed(root, "fit -q gaps.csv --model ica --inference noisy --components 3 -o noisy.covary");
    for model in ["exact", "noisy"] {
        for call in [
            format!("score {model}.covary sound.csv"),
            format!("sample {model}.covary --rows 3"),
            format!("plot {model}.covary --kind scree -o a.svg"),
            format!("plot {model}.covary sound.csv --kind scores -o a.svg"),
        ] {
            refused(
                root,
                &call,
                1,
                "holds independent components, which are not a density of rows; transform, reconstruct,",
            );
            refused(root, &call, 1, "--model ppca or fa has a density");
        }
    }
    refused(root, "impute -q gaps.csv --model exact.covary -o f.csv", 1, "not a density of rows");
    refused(root, "transform exact.covary gaps.csv", 1, "86 gaps");
    refused(root, "report sound.csv --model ica --target a -o a.html", 2, "--target");
}

#[test]
fn gaussian_sources_are_warned_of_by_number() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shape = covary::data::Shape { rows: 20_000, columns: 3, n_components: 2 };
    let (table, _) = covary::data::simulate::ppca(shape, /* seed */ 1);
    write_table(&folder.path().join("gaussian.csv"), table.values());
    for method in ["fastica", "noisy"] {
        let fit =
            format!("fit -q gaussian.csv --model ica --components 2 --max-iter 30 --inference {method}");
        let said = succeed(folder.path(), &format!("{fit} -o a.covary"));
        assert!(
            said.err.contains("sources 1, 2 have an excess kurtosis below 0.1"),
            "{method}: {}",
            said.err
        );
        assert!(succeed(folder.path(), "inspect a.covary").out.contains("like a Gaussian's"));
    }
}

#[test]
fn odd_tables_are_separated_or_refused_in_words() {
    let folder = folder_with_sound();
    let root = folder.path();
    let whole = sources(300).dot_t(&mixing());
    let with = |name: &str, column: &dyn Fn(usize) -> f64| {
        let wide = Matrix::from_fn(300, 5, |i, j| if j < 4 { whole[(i, j)] } else { column(i) });
        write_table(&root.join(name), &wide);
    };
    // Rank 3 of 4 columns: all directions there are, and no more.
    succeed(root, "fit -q sound.csv --model ica -o a.covary");
    assert_eq!(saved(root, "a.covary").model.n_components(), 3);
    refused(root, "fit -q sound.csv --model ica --components 4 -o a.covary", 1, "rank");
    // A constant column is set aside, and comes back by its constant.
    with("constant.csv", &|_| 4.5);
    let said = succeed(root, "fit constant.csv --model ica -o a.covary");
    assert!(said.err.contains("constant, so not in the model"), "{}", said.err);
    assert_eq!(learned(root, "a.covary").constants[0].name, "c5");
    succeed(root, "reconstruct -q a.covary constant.csv -o back.csv");
    assert_eq!(read(root, "back.csv").dataset().values()[(7, 4)], 4.5);
    // An empty column cannot be modeled, which is said.
    with("empty.csv", &|_| f64::NAN);
    let said = succeed(root, "fit -q empty.csv --model ica --inference noisy -o a.covary");
    assert!(said.err.contains("no value at all, so not in the model; gaps stay: `c5`"), "{}", said.err);
    // One column is one source.
    succeed(root, "fit -q sound.csv --columns c1 --model ica -o one.covary");
    assert_eq!(saved(root, "one.covary").model.n_components(), 1);
    succeed(root, "fit -q sound.csv --columns c1 --model ica --inference maximum-likelihood -o one.covary");
    fs::write(root.join("row.csv"), "a,b\n1,2\n").unwrap();
    refused(root, "fit -q row.csv --model ica -o a.covary", 1, "row.csv");
}

#[test]
fn wrong_calls_are_named() {
    let folder = folder_with_sound();
    let fit = |rest: &str| format!("fit -q sound.csv --model ica -o a.covary {rest}");
    for (rest, why) in [
        ("--standardize", "--standardize goes with"),
        (
            "--inference em",
            "`em` does not lead to --model ica; give one of fastica, maximum-likelihood, noisy",
        ),
        ("--prior color=3", "fastica has no option `color`"),
        ("--prior contrast=loud", "logcosh, with its slope such as `logcosh 1.5`, exp or cube"),
        ("--mixtures 2", "--mixtures goes with"),
        ("--check", "--check goes with a linear-Gaussian model"),
        ("--target label", "--target goes with --model pca, ppca, fa or gaussian, not with ica"),
        ("--checkpoint c", "--checkpoint goes with --inference gibbs"),
    ] {
        refused(folder.path(), &fit(rest), 2, why);
    }
    refused(folder.path(), &fit("--prior contrast=logcosh:3"), 2, "logcosh");
    refused(folder.path(), &fit("--components 0"), 1, "n_components");
}
