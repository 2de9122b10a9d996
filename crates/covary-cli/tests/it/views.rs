//! Models of several views by the command.

use super::{folder_with_examples, learned, run_in, succeed};
use covary::data::simulate;
use covary::io::{Table, csv};
use covary::{Dataset, Density, LinearGaussian, Matrix, Noise};
use rand_chacha::rand_core::SeedableRng;
use std::fs;
use std::path::Path;

fn read(folder: &Path, name: &str) -> Table {
    csv::read(fs::File::open(folder.join(name)).expect("written")).expect("a table")
}

fn saved(folder: &Path, name: &str) -> covary::learned::LinearFit {
    learned(folder, name).linear().expect("one model").clone()
}

fn refused(folder: &Path, call: &str) -> String {
    let arguments: Vec<&str> = call.split_whitespace().collect();
    let said = run_in(folder, &arguments, b"");
    assert_ne!(said.code, Some(0), "{call}: {}", said.err);
    assert!(!said.err.contains("panicked"), "{call}: {}", said.err);
    said.err
}

const VIEWS: &str = "--view x=alcohol:magnesium --view y=total_phenols:proline";

#[test]
fn canonical_correlation_by_every_verb() {
    let folder = folder_with_examples();
    let root = folder.path();
    let said = succeed(root, &format!("fit examples/wine_gaps.csv --model pcca {VIEWS} -o views.covary"));
    assert!(
        said.err.contains("chose 3 components: canonical correlations before the first that may be chance")
    );
    let kept = saved(root, "views.covary");
    assert_eq!((kept.views.clone(), kept.spec.views.clone()), (vec!["x".into(), "y".into()], vec![5, 8]));
    let canonical = learned(root, "views.covary").canonical().unwrap().unwrap();
    let table = read(root, "examples/wine_gaps.csv");
    let data = table.dataset();

    succeed(root, "transform -q views.covary examples/wine_gaps.csv --covariance -o scores.csv");
    let scores = read(root, "scores.csv");
    assert_eq!(scores.column_names()[..4], ["cultivar", "component_1", "component_2", "component_3"]);
    assert_eq!(scores.n_columns(), 1 + 3 + 6);
    let z = kept.model.posterior(data).unwrap();
    assert_eq!(scores.dataset().values().column(1), z.mean.column(1));
    assert_eq!(scores.dataset().values()[(0, 8)], z.covariance(0)[(2, 2)]);

    succeed(root, "transform -q views.covary examples/wine_gaps.csv --coordinates variates -o variates.csv");
    let variates = read(root, "variates.csv");
    assert_eq!(variates.column_names(), ["cultivar", "x_1", "y_1", "x_2", "y_2", "x_3", "y_3"]);
    let [u, v] = canonical.variates(data).unwrap();
    assert_eq!(variates.dataset().values().column(2), u.column(1));
    assert_eq!(variates.dataset().values().column(5), v.column(2));

    let said = succeed(root, "inspect views.covary");
    assert!(said.out.contains("view `x`: alcohol, malic_acid"), "{}", said.out);
    let first = format!("canonical correlations: {:.4}", canonical.correlations()[0]);
    assert!(said.out.contains(&first) && said.out.contains("not shared"), "{}", said.out);
    let json: serde_json::Value =
        serde_json::from_str(&succeed(root, "inspect --json views.covary").out).unwrap();
    assert_eq!(json["canonical_correlations"][1].as_f64(), Some(canonical.correlations()[1]));
    assert_eq!(json["views"][1]["columns"][0], "total_phenols");

    let call = format!("impute examples/wine_gaps.csv --model pcca {VIEWS} -o filled.csv");
    assert!(succeed(root, &call).err.contains("checked on 418 hidden cells"));
    assert_eq!(read(root, "filled.csv").dataset().n_gaps(), 0);
    succeed(root, "score -q views.covary examples/wine_gaps.csv -o odd.csv");
    assert_eq!(read(root, "odd.csv").dataset().values().column(0), kept.model.log_density(data).unwrap());
    succeed(root, "sample -q views.covary --rows 4 -o new.csv");
    assert_eq!(read(root, "new.csv").dataset().n_rows(), 4);
}

#[test]
fn a_view_is_predicted_from_the_other_whether_or_not_it_is_there() {
    let folder = folder_with_examples();
    let root = folder.path();
    let call = format!("fit -q examples/wine.csv --model pcca {VIEWS} --components 2 -o views.covary");
    succeed(root, &call);
    assert_eq!(learned(root, "views.covary").method.name, "bach-jordan");
    succeed(root, "reconstruct -q views.covary examples/wine.csv --view y --interval 0.9 -o both.csv");
    let text = fs::read_to_string(root.join("examples/wine.csv")).unwrap();
    let first: String =
        text.lines().map(|line| line.split(',').take(5).collect::<Vec<_>>().join(",") + "\n").collect();
    fs::write(root.join("x.csv"), first).unwrap();
    succeed(root, "reconstruct -q views.covary x.csv --view y --interval 0.9 -o alone.csv");
    let (both, alone) = (read(root, "both.csv"), read(root, "alone.csv"));
    assert_eq!(
        alone.column_names()[..4],
        ["predicted_total_phenols", "sd_total_phenols", "lower_total_phenols", "upper_total_phenols"]
    );
    assert_eq!(alone.n_columns(), 4 * 8);
    // Beside the predictions stand the columns that were there.
    assert_eq!(both.n_columns(), 4 * 8 + 8 + 1);
    let wine = read(root, "examples/wine.csv");
    let x = wine.dataset().of_columns(&[0, 1, 2, 3, 4]).unwrap();
    let predicted = learned(root, "views.covary").canonical().unwrap().unwrap().predict(1, &x).unwrap();
    let cell = predicted.cells().iter().find(|c| (c.row, c.column) == (6, 7)).unwrap();
    let column = both.column_names().iter().position(|n| n == "predicted_nonflavanoid_phenols").unwrap();
    let got: f64 = both.text(6, column).parse().unwrap();
    assert!((got - cell.mean).abs() < 1e-9 * cell.mean.abs(), "{got} {}", cell.mean);
    let (values, truth) = (alone.dataset().values(), wine.dataset());
    let inside = (0..178 * 8)
        .filter(|at| {
            let (i, j) = (at / 8, at % 8);
            (values[(i, 4 * j + 2)]..values[(i, 4 * j + 3)]).contains(&truth.row(i)[5 + j])
        })
        .count();
    let share = inside as f64 / (178.0 * 8.0);
    assert!((share - 0.9).abs() < 0.03, "{share}");
}

/// One component of all three views, one of two, one private; a tenth of the cells gone, and the second view from
/// every fifth row.
fn three_views(root: &Path) {
    let w = Matrix::from_fn(13, 3, |j, k| {
        let view = [0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2][j];
        let active = [[true, true, false], [true, true, false], [true, false, true]][view][k];
        if active { ((7 * j + 5 * k * (j + 1)) as f64).sin() + 0.3 } else { 0.0 }
    });
    let truth = LinearGaussian::new(w, vec![1.0; 13], Noise::Isotropic(0.1)).unwrap();
    let whole = Dataset::new(truth.sample(300, &mut rand_chacha::ChaCha8Rng::seed_from_u64(1))).unwrap();
    let gaps = simulate::hide(&whole, 0.1, 2);
    let mut text = "a1,a2,a3,a4,a5,b1,b2,b3,b4,c1,c2,c3,c4\n".to_owned();
    for i in 0..300 {
        let cell = |j: usize| match gaps.row(i)[j] {
            v if v.is_nan() || (i % 5 == 0 && (5..9).contains(&j)) => String::new(),
            v => v.to_string(),
        };
        text += &((0..13).map(cell).collect::<Vec<_>>().join(",") + "\n");
    }
    fs::write(root.join("three.csv"), text).unwrap();
}

#[test]
fn group_factor_analysis_finds_what_is_shared() {
    let folder = folder_with_examples();
    let root = folder.path();
    three_views(root);
    let views = "--model gfa --view a=a1:a5 --view b=b1:b4 --view c=c1:c4";
    let said = succeed(root, &format!("fit three.csv {views} -o three.covary"));
    assert!(said.err.contains("fitted group factor analysis, 3 components of the"), "{}", said.err);
    assert!(said.err.contains("2 components shared by views, 1 private to one"), "{}", said.err);
    let kept = saved(root, "three.covary");
    assert_eq!(kept.report.relevance.len(), 3 * 3);
    let found = learned(root, "three.covary").activity().unwrap().unwrap();
    let mut active: Vec<Vec<bool>> =
        (0..3).map(|i| (0..3).map(|v| found.is_active(v, i)).collect()).collect();
    active.sort();
    assert_eq!(active, [[false, false, true], [true, true, false], [true, true, true]]);
    let said = succeed(root, "inspect three.covary");
    assert!(
        said.out.contains("share of the variance of each view") && said.out.contains('–'),
        "{}",
        said.out
    );
    let json: serde_json::Value =
        serde_json::from_str(&succeed(root, "inspect --json three.covary").out).unwrap();
    let share = json["explained_variance_by_view"][1][0].as_f64();
    assert_eq!(share, Some(found.explained_variance[(1, 0)]));
    succeed(root, "reconstruct -q three.covary three.csv --view b --bare -o b.csv");
    assert_eq!(read(root, "b.csv").n_columns(), 4 * 4);
    let said = succeed(root, &format!("impute three.csv {views} -o filled.csv"));
    assert!(said.err.contains("checked on"), "{}", said.err);
    assert_eq!(read(root, "filled.csv").dataset().n_gaps(), 0);
    succeed(root, "plot -q three.covary --kind views -o three.svg");
    for (kind, words) in [("relevance", "(--kind views)"), ("hinton", "")] {
        let call = format!("plot three.covary --kind {kind} -o f.svg");
        if words.is_empty() {
            succeed(root, &call);
        } else {
            assert!(refused(root, &call).contains(words));
        }
    }
    // The same bits on one thread and two.
    succeed(root, &format!("fit -q three.csv {views} --threads 1 -o one.covary"));
    succeed(root, &format!("fit -q three.csv {views} --threads 2 -o two.covary"));
    assert_eq!(fs::read(root.join("one.covary")).unwrap(), fs::read(root.join("two.covary")).unwrap());
}

#[test]
fn views_that_cannot_be_are_named() {
    let folder = folder_with_examples();
    let root = folder.path();
    let fit = |options: &str| refused(root, &format!("fit examples/wine_gaps.csv {options} -o m.covary"));
    for (options, words) in [
        ("--model pcca", "relates two views; name each: --view NAME=COLUMNS"),
        ("--model pcca --view x=1:3", "relates two views; name each"),
        ("--model gfa", "relates one view or more; name each"),
        ("--model ppca --view x=1:3", "--view goes with --model pcca or gfa"),
        ("--model mppca --view x=1:3", "--view goes with --model pcca or gfa"),
        ("--model pcca --view x=1:3 --view x=4:6", "two views are called `x`"),
        ("--model pcca --view x=1:3 --view y=3:6", "column `ash` is in view `x` and in view `y`"),
        ("--model pcca --view x=1:3 --view y=nothing", "nothing"),
        ("--model pcca --view x=1:3 --view y=", "view `y` has no columns"),
        ("--model pcca --view x=1:3 --view 4:6", "give a name and columns"),
        ("--model pcca --view x=1:3 --view y=4:6 --columns 1:6", "leave out --columns"),
        (
            "--model pcca --view x=1:3 --view y=4:6 --rotation varimax",
            "--rotation goes with --model pca, ppca, tppca, fa, bpca, bspca or gaussian, not with pcca",
        ),
        ("--model pcca --view x=1:3 --view y=4:6 --components 0.9", "a share of the variance"),
        ("--model pcca --view x=1:3 --view y=4:6 --components 4", "4 components are too many"),
        ("--model pcca --view x=1:3 --view y=4:6 --inference bach-jordan", "use `shared-private`"),
        ("--model pcca --view x=1:3 --view y=4:6 --inference em", "does not lead to --model pcca"),
        ("--model pcca --view x=1:3 --view y=14", "cultivar"),
    ] {
        let said = fit(options);
        assert!(said.contains(words), "{options}: {said}");
    }
    let constant = "a,b,c,d\n1,2,3,7\n2,1,5,7\n3,5,4,7\n4,3,3,7\n";
    fs::write(root.join("constant.csv"), constant).unwrap();
    let said = refused(root, "fit constant.csv --model pcca --view x=a:c --view flat=d -o m.covary");
    assert!(said.contains("no column of view `flat` varies"), "{said}");
    let row = |i: i32| [i % 7, i * i % 11, 2 * (i % 7), i * 5 % 13].map(|v| v.to_string()).join(",");
    let rows: Vec<String> = (0..30).map(row).collect();
    fs::write(root.join("repeated.csv"), format!("a,b,c,d\n{}\n", rows.join("\n"))).unwrap();
    let said = refused(root, "fit repeated.csv --model pcca --view x=a:c --view y=d -o m.covary");
    assert!(
        said.contains("view `x` has 3 columns of rank 2 in 30 rows") && said.contains("--option ridge=0.1"),
        "{said}"
    );
    succeed(
        root,
        "fit -q repeated.csv --model pcca --view x=a:c --view y=d --prior ridge=0.1 --components 1 -o m.covary",
    );
    let said = refused(root, "reconstruct m.covary repeated.csv --view z");
    assert!(said.contains("the model has no view `z`; it has `x` and `y`"), "{said}");
    assert!(refused(root, "reconstruct m.covary repeated.csv").contains("say which: --view NAME"));
    assert!(refused(root, "report repeated.csv --model pcca -o a.html").contains("--view"));
    succeed(root, "fit -q repeated.csv --components 1 -o plain.covary");
    assert!(
        refused(root, "reconstruct plain.covary repeated.csv --view x").contains("a model of several views")
    );
    assert!(
        refused(root, "transform plain.covary repeated.csv --coordinates variates")
            .contains("goes with a pcca model")
    );
    assert!(
        refused(root, "transform m.covary repeated.csv --coordinates whitened")
            .contains("--coordinates variates")
    );
}
