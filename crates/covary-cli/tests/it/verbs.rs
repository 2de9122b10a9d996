//! The verbs over a model file agree with each other and with the library.

use super::{folder_with_examples, learned, run_in, succeed};
use covary::io::csv;
use covary::{Coordinates, Density, Reconstruction};
use serde_json::Value;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// A folder with the examples and `wine.covary`, fitted to the wine with gaps.
fn folder_with_model(flags: &str) -> tempfile::TempDir {
    let folder = folder_with_examples();
    succeed(folder.path(), &format!("fit -q examples/wine_gaps.csv --components 2 -o wine.covary {flags}"));
    folder
}

fn read(folder: &Path, name: &str) -> covary::io::Table {
    csv::read(fs::File::open(folder.join(name)).expect("written")).expect("a table")
}

fn saved(folder: &Path) -> covary::learned::LinearFit {
    learned(folder, "wine.covary").linear().expect("one model").clone()
}

#[track_caller]
fn check_numbers(got: &covary::io::Table, want: &covary::Matrix) {
    let got = got.dataset().values();
    assert_eq!((got.n_rows(), got.n_columns()), (want.n_rows(), want.n_columns()));
    assert_eq!(got.as_slice(), want.as_slice(), "files keep every digit");
}

#[test]
fn transform_reconstruct_and_score_say_what_the_library_says() {
    let folder = folder_with_model("");
    let (root, saved) = (folder.path(), saved(folder.path()));
    let data = read(root, "examples/wine_gaps.csv");
    let data = data.dataset();

    succeed(root, "transform -q wine.covary examples/wine_gaps.csv -o scores.csv");
    let scores = read(root, "scores.csv");
    assert_eq!(scores.column_names(), ["cultivar", "component_1", "component_2"]);
    check_numbers(&scores, &saved.model.transform(data, Coordinates::Posterior).expect("same columns"));
    succeed(root, "transform -q wine.covary examples/wine_gaps.csv --coordinates bartlett -o scores.csv");
    check_numbers(
        &read(root, "scores.csv"),
        &saved.model.transform(data, Coordinates::Bartlett).expect("same columns"),
    );

    succeed(root, "transform -q wine.covary examples/wine_gaps.csv --covariance -o scores.csv");
    let scores = read(root, "scores.csv");
    assert_eq!(scores.column_names()[3..], ["covariance_1_1", "covariance_2_1", "covariance_2_2"]);
    let posterior = saved.model.posterior(data).expect("same columns");
    let row = scores.dataset().row(4);
    let covariance = posterior.covariance(4);
    assert_eq!(row[2..], [covariance[(0, 0)], covariance[(1, 0)], covariance[(1, 1)]]);

    succeed(root, "reconstruct -q wine.covary examples/wine_gaps.csv -o seen.csv");
    let seen = read(root, "seen.csv");
    assert_eq!(seen.column_names(), read(root, "examples/wine_gaps.csv").column_names());
    check_numbers(
        &seen,
        &saved.model.reconstruct(data, Reconstruction::PosteriorMean).expect("same columns"),
    );

    let said = succeed(root, "score wine.covary examples/wine_gaps.csv -o odd.csv");
    let odd = read(root, "odd.csv");
    assert_eq!(odd.dataset().values().column(0), saved.model.log_density(data).expect("same columns"));
    let total = saved.model.log_likelihood(data).expect("same columns");
    assert!(said.err.contains(&format!("log-likelihood {total:.4} over 178 rows")), "{}", said.err);
}

#[test]
fn a_model_fills_its_own_table_as_the_fit_did_and_new_rows_without_refitting() {
    let folder = folder_with_model("");
    let root = folder.path();
    succeed(root, "impute -q examples/wine_gaps.csv --components 2 --bounds none -o by_fit.csv");
    let said = succeed(root, "impute examples/wine_gaps.csv --model wine.covary -o by_model.csv");
    let bytes = |name: &str| fs::read(root.join(name)).expect("written");
    assert_eq!(bytes("by_fit.csv"), bytes("by_model.csv"));
    assert!(!said.err.contains("by em") && said.err.contains("not fitted again"), "{}", said.err);

    // Columns in another order, one row, a column the model does not know.
    let header = "note,proline,hue,alcohol,malic_acid,ash,alcalinity_of_ash,magnesium,total_phenols,flavanoids,nonflavanoid_phenols,proanthocyanins,color_intensity,od280/od315_of_diluted_wines";
    let row = "new,,1.0,13.5,2,2.3,18,100,2.5,2.4,0.3,1.6,5,3";
    fs::write(root.join("new.csv"), format!("{header}\n{row}\n")).expect("writable");
    succeed(root, "impute -q new.csv --model wine.covary -o filled.csv");
    let filled = fs::read_to_string(root.join("filled.csv")).expect("written");
    let cells: Vec<&str> = filled.lines().nth(1).expect("a row").split(',').collect();
    let proline: f64 = cells[1].parse().expect("filled");
    assert!((400.0..1400.0).contains(&proline), "{proline}");
    assert_eq!(cells[2..].join(","), row.split_once(",,").expect("a gap").1);
}

#[test]
fn draws_are_joint_seeded_and_keep_observed_cells() {
    let folder = folder_with_model("");
    let root = folder.path();
    let draw = |seed: u64| {
        succeed(
            root,
            &format!(
                "impute -q examples/wine_gaps.csv --model wine.covary --draws 10 --overwrite --seed {seed} -o f.csv"
            ),
        );
        (1..=10).map(|k| fs::read(root.join(format!("f-{k:02}.csv"))).expect("written")).collect::<Vec<_>>()
    };
    let first = draw(1);
    assert_eq!(first, draw(1));
    assert_ne!(first, draw(2));
    assert_ne!(first[0], first[1]);
    let (before, means) = (read(root, "examples/wine_gaps.csv"), read(root, "f.csv"));
    let mut squares = 0.0;
    for draw in &first {
        let draw = csv::read(&draw[..]).expect("a table");
        for (i, row) in before.dataset().values().rows().enumerate() {
            for (j, cell) in row.iter().enumerate() {
                let drawn = draw.dataset().row(i)[j];
                assert!(cell.is_nan() || *cell == drawn);
                let sd = before.dataset().observed_variances()[j].sqrt();
                squares += ((drawn - means.dataset().row(i)[j]) / sd).powi(2);
            }
        }
    }
    // Draws spread about the means as the model's uncertainty does: well below the columns' own spread.
    let spread = (squares / (10.0 * 228.0)).sqrt();
    assert!((0.4..0.9).contains(&spread), "{spread}");
}

#[test]
fn rotated_factors_come_with_their_scores() {
    let folder = folder_with_model("--model fa --rotation oblimin");
    let root = folder.path();
    let saved = saved(root);
    let rotated = &saved.rotation.as_ref().expect("a rotation").rotated;
    assert!(rotated.factor_correlations[(0, 1)].abs() > 1e-3);
    succeed(root, "transform -q wine.covary examples/wine_gaps.csv --covariance -o scores.csv");
    let data = read(root, "examples/wine_gaps.csv");
    let plain = saved.model.transform(data.dataset(), Coordinates::Posterior).expect("same columns");
    let scores = read(root, "scores.csv");
    let want = rotated.scores(&plain).expect("two scores a row");
    assert_eq!(scores.dataset().values().column(0), want.column(0));
    // R⁻¹ V R⁻ᵀ, checked through what it means: W V Wᵀ = L V' Lᵀ.
    let posterior = saved.model.posterior(data.dataset()).expect("same columns");
    let turned = rotated.score_covariance(posterior.covariance(0));
    let before = saved.model.loadings().dot(posterior.covariance(0)).dot_t(saved.model.loadings());
    let after = rotated.loadings.dot(&turned).dot_t(&rotated.loadings);
    assert!((before[(3, 5)] - after[(3, 5)]).abs() < 1e-9 * before[(3, 5)].abs().max(1.0));
    assert_eq!(scores.dataset().row(0)[2], turned[(0, 0)]);
    let said = succeed(root, "inspect wine.covary");
    assert!(
        said.out.contains("after oblimin rotation") && said.out.contains("correlations of the factors"),
        "{}",
        said.out
    );
}

#[test]
fn rotated_principal_components_come_with_rotated_scores() {
    let folder = folder_with_examples();
    let root = folder.path();
    succeed(
        root,
        "fit -q examples/wine.csv --model pca --standardize --components 3 --rotation varimax -o wine.covary",
    );
    succeed(root, "transform -q wine.covary examples/wine.csv -o scores.csv");
    let (saved, data, scores) = (saved(root), read(root, "examples/wine.csv"), read(root, "scores.csv"));
    let rotated = &saved.rotation.as_ref().expect("a rotation").rotated;
    let plain = saved.model.transform(data.dataset(), Coordinates::Posterior).expect("same columns");
    // Varimax is orthogonal: scores rotate as x̂ R, and L (x̂ R) is the same part of a row as W x̂.
    for i in 0..data.n_rows() {
        let got = scores.dataset().row(i);
        for k in 0..3 {
            let want: f64 = (0..3).map(|l| plain[(i, l)] * rotated.transform[(l, k)]).sum();
            assert!((got[k] - want).abs() < 1e-10, "row {i}: {} instead of {want}", got[k]);
        }
        for j in 0..13 {
            let part = |w: &covary::Matrix, x: &[f64]| (0..3).map(|k| w[(j, k)] * x[k]).sum::<f64>();
            let (a, b) = (part(&rotated.loadings, got), part(saved.model.loadings(), plain.row(i)));
            assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "row {i}, column {j}: {a} instead of {b}");
        }
    }
}

#[test]
fn pca_gives_projections() {
    let folder = folder_with_examples();
    let root = folder.path();
    succeed(root, "fit -q examples/wine.csv --model pca --components 3 -o wine.covary");
    succeed(root, "transform -q wine.covary examples/wine.csv -o scores.csv");
    let scores = read(root, "scores.csv");
    let scores = scores.dataset();
    let model = saved(root).model;
    // Uncorrelated, with the variances the model states.
    for (k, variance) in model.explained_variance().iter().enumerate() {
        assert!((scores.observed_variances()[k] / variance - 1.0).abs() < 1e-9);
        assert!(scores.observed_means()[k].abs() < 1e-9 * variance.sqrt());
    }
}

#[test]
fn constant_columns_are_set_aside_and_filled_with_their_constant() {
    let folder = folder_with_examples();
    let root = folder.path();
    let wine = fs::read_to_string(root.join("examples/wine_gaps.csv")).expect("shipped");
    let with_constant = |(i, line): (usize, &str)| {
        format!(
            "{line},{}\n",
            if i == 0 {
                "unit"
            } else if i % 7 == 3 {
                ""
            } else {
                "7.50"
            }
        )
    };
    fs::write(root.join("c.csv"), wine.lines().enumerate().map(with_constant).collect::<String>())
        .expect("writable");
    let said = succeed(root, "impute c.csv --components 2 --cells cells.csv -o filled.csv");
    assert!(
        said.err.contains("constant, so not in the model; gaps take the constant: `unit`"),
        "{}",
        said.err
    );
    let filled = fs::read_to_string(root.join("filled.csv")).expect("written");
    succeed(root, "impute -q examples/wine_gaps.csv --components 2 -o without.csv");
    let without = fs::read_to_string(root.join("without.csv")).expect("written");
    for (i, (line, alone)) in filled.lines().zip(without.lines()).enumerate().skip(1) {
        let constant = if i % 7 == 3 { "7.5" } else { "7.50" };
        assert_eq!(line, format!("{alone},{constant}"), "a constant column changes no other");
    }
    let cells = fs::read_to_string(root.join("cells.csv")).expect("written");
    assert!(cells.lines().any(|line| line == "3,unit,7.5,7.5,0.0,7.5,7.5"), "{cells}");

    // It travels with the model: sampled, reconstructed, and welcome but not needed in new tables.
    succeed(root, "fit -q c.csv --components 2 -o wine.covary");
    assert!(
        succeed(root, "sample -q wine.covary --rows 2")
            .out
            .lines()
            .all(|l| l.ends_with(",unit") || l.ends_with(",7.5"))
    );
    assert!(
        succeed(root, "reconstruct -q wine.covary c.csv").out.lines().skip(1).all(|l| l.ends_with(",7.5"))
    );
    succeed(root, "impute -q examples/wine_gaps.csv --model wine.covary -o again.csv");
    succeed(root, "impute -q examples/wine_gaps.csv --components 2 --bounds none -o plain.csv");
    let read = |name: &str| fs::read_to_string(root.join(name)).expect("written");
    assert_eq!(read("again.csv"), read("plain.csv"));
}

#[test]
fn a_column_observed_once_keeps_its_gaps_and_says_so() {
    let folder = folder_with_examples();
    let root = folder.path();
    fs::write(root.join("t.csv"), "x,y,z\n1,2,\n2,4.1,9\n3,5.9,\n4,,\n5,10.2,\n").expect("writable");
    let said = succeed(root, "impute t.csv --components 1 -o filled.csv");
    assert!(said.err.contains("observed once, so not in the model; gaps stay: `z`"), "{}", said.err);
    assert!(said.err.contains("warning: 4 gaps left"), "{}", said.err);
    let filled = fs::read_to_string(root.join("filled.csv")).expect("written");
    assert!(filled.ends_with("5,10.2,\n"), "{filled}");
}

#[test]
fn what_is_odd_is_warned_of_even_when_quiet() {
    let folder = folder_with_examples();
    let root = folder.path();
    let wine = fs::read_to_string(root.join("examples/wine_gaps.csv")).expect("shipped");
    // One column in ten cells coded -99, the last row twice.
    let coded: Vec<String> = wine
        .lines()
        .enumerate()
        .map(|(i, line)| match line.split_once(',') {
            Some((_, rest)) if i % 17 == 3 => format!("-99,{rest}"),
            _ => line.to_owned(),
        })
        .collect();
    fs::write(root.join("coded.csv"), format!("{}\n{}\n", coded.join("\n"), coded[178])).expect("writable");
    let said = succeed(root, "impute -q coded.csv --components 2 -o f.csv");
    assert!(said.err.contains("warning: -99 stands in") && said.err.contains("`alcohol`"), "{}", said.err);
    assert!(said.err.contains("warning: row 179 repeats row 178"), "{}", said.err);
    assert!(said.err.lines().all(|l| l.starts_with("warning: ")), "{}", said.err);
    let said = succeed(root, "impute -q coded.csv --gaps -99 --components 2 -o f.csv");
    assert!(!said.err.contains("-99"), "{}", said.err);
}

#[test]
fn gaps_that_follow_the_first_component_are_named() {
    let folder = folder_with_examples();
    let wine = read(folder.path(), "examples/wine.csv");
    let flavanoids =
        wine.column_names().iter().position(|n| n == "flavanoids").expect("a column of the wine");
    let text = fs::read_to_string(folder.path().join("examples/wine.csv")).expect("shipped");
    // `hue` is missing where flavanoids, which lead the first component, are high.
    let hue = wine.column_names().iter().position(|n| n == "hue").expect("a column of the wine");
    let hide = |line: &str| {
        let mut cells: Vec<&str> = line.split(',').collect();
        if cells[flavanoids].parse::<f64>().is_ok_and(|v| v > 2.5) {
            cells[hue] = "";
        }
        cells.join(",") + "\n"
    };
    fs::write(folder.path().join("follow.csv"), text.lines().map(hide).collect::<String>())
        .expect("writable");
    let said = succeed(folder.path(), "impute -q follow.csv --components 2 -o f.csv");
    assert!(said.err.contains("warning: gaps in `hue` are more frequent where component 1"), "{}", said.err);
}

#[test]
fn a_model_that_does_not_beat_the_mean_is_said_plainly() {
    // Unrelated columns.
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64
    };
    let mut table = "a,b,c,d\n".to_owned();
    for i in 0..300 {
        let d = if i % 5 == 0 { String::new() } else { next().to_string() };
        writeln!(table, "{},{},{},{d}", next(), next(), next()).expect("memory takes all");
    }
    let said = super::run(&["impute", "-", "--components", "2"], &table);
    assert!(said.err.contains("warning: the model does not beat the mean"), "{}", said.err);
}

#[test]
fn json_reports_what_the_words_say() {
    let folder = folder_with_examples();
    let json = |command: &str| -> Value {
        serde_json::from_str(&succeed(folder.path(), command).out).expect("JSON")
    };
    let fit = json("fit examples/wine_gaps.csv --components 2 --json -q -o wine.covary");
    assert_eq!(fit["data"]["n_gaps"], 228);
    assert_eq!(fit["model"]["n_components"], 2);
    let inspect = json("inspect wine.covary --json");
    assert_eq!(inspect, fit["model"]);
    let impute = json("impute examples/wine_gaps.csv --components 2 --json -q -o f.csv");
    assert_eq!(impute["n_filled"], 228);
    let share = impute["model"]["check"]["coverage"][2]["share"].as_f64().expect("a share");
    assert!((0.85..=1.0).contains(&share));
    let score = json("score wine.covary examples/wine_gaps.csv --json -q -o odd.csv");
    let nats = |value: &Value| value["log_likelihood"].as_f64().expect("a number");
    assert!((nats(&score) - nats(&fit["model"])).abs() < 1e-6);
}

#[test]
fn models_are_the_same_bytes_at_any_thread_count() {
    let folder = folder_with_examples();
    let root = folder.path();
    for flags in ["--components auto --check", "--model fa --components 2 --rotation varimax"] {
        for threads in [1, 2] {
            succeed(
                root,
                &format!("fit -q examples/wine_gaps.csv {flags} --threads {threads} -o {threads}.covary"),
            );
        }
        let bytes = |name: &str| fs::read(root.join(name)).expect("written");
        assert_eq!(bytes("1.covary"), bytes("2.covary"), "{flags}");
    }
}

#[test]
fn columns_are_chosen_and_others_pass_through() {
    let folder = folder_with_examples();
    let root = folder.path();
    let said =
        succeed(root, "fit examples/wine_gaps.csv --columns alcohol:ash,hue --components 1 -o wine.covary");
    assert!(said.err.contains("4 columns of numbers"), "{}", said.err);
    assert_eq!(learned(root, "wine.covary").columns, ["alcohol", "malic_acid", "ash", "hue"]);
    let said = succeed(root, "impute examples/wine_gaps.csv --exclude proline --components 2 -o f.csv");
    assert!(said.err.contains("passed through: `proline`, `cultivar`"), "{}", said.err);
    let filled = fs::read_to_string(root.join("f.csv")).expect("written");
    let before = fs::read_to_string(root.join("examples/wine_gaps.csv")).expect("shipped");
    let tail = |line: &str| line.rsplitn(3, ',').take(2).map(str::to_owned).collect::<Vec<_>>();
    assert!(filled.lines().zip(before.lines()).all(|(a, b)| tail(a) == tail(b)), "proline keeps its gaps");

    let said = run_in(
        root,
        &["impute", "examples/wine_gaps.csv", "--model", "wine.covary", "--exclude", "hue"],
        b"",
    );
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("the model says which columns take part"), "{}", said.err);
}

#[test]
fn a_name_that_the_result_would_have_twice_is_refused() {
    let folder = folder_with_model("");
    let root = folder.path();
    let wine = fs::read_to_string(root.join("examples/wine.csv")).expect("shipped");
    fs::write(root.join("twice.csv"), wine.replacen("cultivar", "component_1", 1)).expect("writable");
    let said = run_in(root, &["transform", "wine.covary", "twice.csv", "-o", "out.csv"], b"");
    assert_eq!(said.code, Some(1));
    assert!(
        said.err.contains("twice.csv: the result has a column `component_1`, and so has the table"),
        "{}",
        said.err
    );
    assert!(!root.join("out.csv").exists());
    succeed(root, "transform -q wine.covary twice.csv --bare -o out.csv");
    assert_eq!(read(root, "out.csv").column_names(), ["component_1", "component_2"]);
}

#[test]
fn what_a_model_file_cannot_heed_is_refused() {
    let folder = folder_with_model("");
    for flags in ["--components 3", "--inference em", "--standardize=false", "--max-iter 5", "--tol 1"] {
        let command = format!("impute examples/wine_gaps.csv --model wine.covary {flags}");
        let said = run_in(folder.path(), &command.split(' ').collect::<Vec<_>>(), b"");
        assert_eq!(said.code, Some(2), "{command}");
        assert!(said.err.contains("a model file is not fitted again"), "{}", said.err);
    }
    let said = run_in(folder.path(), &["impute", "examples/wine_gaps.csv", "--draws", "2", "-o", "-"], b"");
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("--draws writes several tables"), "{}", said.err);
}

#[test]
fn rotations_do_not_depend_on_units() {
    let folder = folder_with_examples();
    let root = folder.path();
    let wine = read(root, "examples/wine.csv");
    let mut scaled = wine.dataset().column_names().join(",") + "\n";
    for row in wine.dataset().values().rows() {
        let cells = row.iter().enumerate().map(|(j, v)| if j == 12 { v / 1000.0 } else { *v });
        scaled += &(cells.map(|v| v.to_string()).collect::<Vec<_>>().join(",") + "\n");
    }
    fs::write(root.join("scaled.csv"), scaled).expect("writable");
    for rotation in ["varimax", "quartimax", "promax", "oblimin"] {
        let correlations = |table: &str| {
            let fit = format!(
                "fit -q {table} --exclude 14: --model fa --components 3 --rotation {rotation} -o wine.covary"
            );
            succeed(root, &fit.replace("scaled.csv --exclude 14:", "scaled.csv"));
            let saved = saved(root);
            let sd = saved.model.variances()[0].sqrt();
            let rotated = saved.rotation.expect("a rotation").rotated;
            [rotated.factor_correlations[(0, 1)], rotated.loadings[(0, 0)] / sd]
        };
        let (before, after) = (correlations("examples/wine.csv"), correlations("scaled.csv"));
        for (a, b) in before.iter().zip(after) {
            assert!((a - b).abs() < 1e-4 && a.abs() <= 1.5, "{rotation}: {before:?} {after:?}");
        }
    }
}

#[test]
fn rows_with_heavy_tails_have_weights() {
    let folder = folder_with_examples();
    let root = folder.path();
    let fit = "fit -q examples/wine_gaps.csv --exclude cultivar --components 2";
    succeed(root, &format!("{fit} --model tppca --option degrees_of_freedom=4 -o m.covary"));
    let scored = succeed(root, "score -q m.covary examples/wine_gaps.csv").out;
    let mut lines = scored.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let at = |name: &str| header.iter().position(|h| *h == name).expect("a column");
    assert_eq!(at("weight"), at("log_likelihood") + 1);
    for line in lines {
        let number = |name: &str| line.split(',').nth(at(name)).unwrap().parse::<f64>().unwrap();
        let want = (4.0 + number("n_observed")) / (4.0 + number("mahalanobis"));
        assert!((number("weight") - want).abs() < 1e-9, "{line}");
    }
    let inspected = succeed(root, "inspect m.covary").out;
    assert!(inspected.contains("rows are Student's t with 4.000 degrees of freedom"), "{inspected}");
    let json: serde_json::Value =
        serde_json::from_str(&succeed(root, "inspect m.covary --json").out).unwrap();
    assert_eq!(json["degrees_of_freedom"], 4.0);
    // Others have none.
    succeed(root, &format!("{fit} --model ppca -o m.covary"));
    assert!(!succeed(root, "score -q m.covary examples/wine_gaps.csv").out.contains("weight"));
    assert!(!succeed(root, "inspect m.covary").out.contains("Student"));
    let refused = run_in(
        root,
        &["fit", "examples/wine_gaps.csv", "--model", "tppca", "--option", "degrees_of_freedom=0"],
        b"",
    );
    assert!(refused.code != Some(0) && refused.err.contains("degrees_of_freedom"), "{}", refused.err);
}
