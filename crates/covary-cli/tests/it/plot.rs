//! `covary plot`: every kind, both formats, numbers as JSON, and calls that cannot be meant.

use super::{folder_with_examples, run_in, succeed};
use covary_report::plot::Kind;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// A folder with the examples and fits of the wine with gaps.
fn folder_with_models() -> tempfile::TempDir {
    let folder = folder_with_examples();
    succeed(folder.path(), "fit -q examples/wine_gaps.csv --components 3 -o wine.covary");
    succeed(folder.path(), "fit -q examples/wine_gaps.csv --model bpca -o bayes.covary");
    succeed(folder.path(), "fit -q examples/wine.csv --model ica --components 4 -o sources.covary");
    let views = "--model pcca --view x=1:5 --view y=6:13 -o views.covary";
    succeed(folder.path(), &format!("fit -q examples/wine_gaps.csv {views}"));
    let groups = "--model mppca --mixtures 3 --components 2 -o groups.covary";
    succeed(folder.path(), &format!("fit -q examples/wine_gaps.csv {groups}"));
    let factors = "--model fa --components 2 --rotation oblimin -o factors.covary";
    succeed(folder.path(), &format!("fit -q examples/wine.csv {factors}"));
    let sparse = "--model spca --components 2 -o sparse.covary";
    succeed(folder.path(), &format!("fit -q examples/wine_gaps.csv {sparse}"));
    let in_time = "--model dfm --time month --season 12 --components 2 -o months.covary";
    succeed(folder.path(), &format!("fit -q examples/months.csv {in_time}"));
    let curves = "--model fpca --curve child --time age --components 2 -o growth.covary";
    succeed(folder.path(), &format!("fit -q examples/growth.csv {curves}"));
    folder
}

/// What each kind is asked for.
fn arguments(kind: Kind) -> &'static str {
    match kind {
        Kind::Hinton | Kind::Circle | Kind::Contributions => "wine.covary",
        Kind::Loadings | Kind::Relevance => "bayes.covary",
        Kind::Diagram => "factors.covary",
        Kind::Trace => "wine.covary bayes.covary",
        Kind::Select => "examples/wine_gaps.csv --max-components 3",
        Kind::Map => "wine.covary examples/wine_gaps.csv --lat hue --lon ash",
        Kind::Images => "wine.covary examples/wine_gaps.csv --shape 1x13",
        Kind::Sources => "sources.covary examples/wine.csv",
        Kind::Mixture => "groups.covary examples/wine_gaps.csv",
        Kind::Views => "views.covary",
        Kind::Path => "sparse.covary examples/wine_gaps.csv",
        Kind::Forecast | Kind::Factors => "months.covary examples/months.csv",
        Kind::Eigenfunctions => "growth.covary",
        Kind::Curves => "growth.covary examples/growth.csv",
        Kind::Scores | Kind::Biplot => "wine.covary examples/wine_gaps.csv --color cultivar --components 1,3",
        Kind::Correlation | Kind::Patterns => "examples/wine_gaps.csv",
        Kind::Pairs => "wine.covary examples/wine_gaps.csv --color cultivar",
        Kind::Outliers => "wine.covary examples/wine_gaps.csv --label cultivar",
        Kind::Scree
        | Kind::Covariance
        | Kind::Missing
        | Kind::Intervals
        | Kind::Samples
        | Kind::Density
        | Kind::Calibration => "wine.covary examples/wine_gaps.csv",
    }
}

#[test]
fn every_kind_is_drawn_and_the_same_twice() {
    let folder = folder_with_models();
    let root = folder.path();
    for kind in Kind::ALL {
        let (name, files) = (kind.name(), arguments(kind));
        let said = succeed(root, &format!("plot -q {files} --kind {name} --json -o a.svg"));
        let numbers: Value = serde_json::from_str(&said.out).expect("JSON");
        assert!(numbers.is_object(), "{name}");
        succeed(root, &format!("plot -q {files} --kind {name} --threads 1 -o b.svg"));
        let read = |file: &str| fs::read_to_string(root.join(file)).expect("written");
        assert!(read("a.svg").starts_with("<svg") && read("a.svg") == read("b.svg"), "{name}");
        let piped = succeed(root, &format!("plot -q {files} --kind {name}"));
        assert_eq!(piped.out, read("a.svg"), "{name}");
        succeed(
            root,
            &format!("plot -q {files} --kind {name} --theme dark --width 500 --height 400 -o c.png"),
        );
        assert!(fs::read(root.join("c.png")).expect("written").starts_with(b"\x89PNG"), "{name}");
    }
}

#[track_caller]
fn refused(root: &Path, command: &str, code: i32, words: &str) {
    let said = run_in(root, &command.split_whitespace().collect::<Vec<_>>(), b"");
    assert_eq!(said.code, Some(code), "covary {command}\n{}", said.err);
    assert!(said.err.contains(words), "covary {command}\n{}", said.err);
}

#[test]
fn calls_that_cannot_be_meant_say_what_would_be() {
    let folder = folder_with_models();
    let root = folder.path();
    refused(root, "plot wine.covary --kind scores -o a.svg", 2, "covary plot MODEL DATA --kind scores");
    refused(
        root,
        "plot wine.covary examples/wine.csv --kind select -o a.svg",
        2,
        "covary plot DATA --kind select",
    );
    refused(root, "plot wine.covary --kind pie -o a.svg", 2, "scree, hinton");
    refused(root, "plot wine.covary --kind hinton -o a.jpg", 2, ".svg, .pdf or .png");
    refused(
        root,
        "plot wine.covary --kind hinton --ellipses rows -o a.svg",
        2,
        "--ellipses goes with --kind scores, biplot",
    );
    refused(root, "plot wine.covary --kind hinton --font-size 3 -o a.svg", 2, "points from 7 to 24");
    refused(root, "plot wine.covary --kind hinton --width 8m -o a.svg", 2, "such as 8cm");
    refused(root, "plot wine.covary --kind relevance -o a.svg", 1, "(--model bpca)");
    refused(root, "plot wine.covary --kind views -o a.svg", 1, "(--model pcca or gfa)");
    refused(root, "plot wine.covary --kind images -o a.svg", 1, "--shape");
    refused(root, "plot wine.covary --kind images --shape 4x4 -o a.svg", 1, "16 cells, and a row has 13");
    refused(root, "plot wine.covary --kind images --shape 4x4 -o a.svg", 1, "(--shape ROWSxCOLUMNS)");
    refused(root, "plot wine.covary --kind map -o a.svg", 1, "--lat COLUMN --lon COLUMN");
    refused(root, "plot wine.covary --kind loadings --components 7 -o a.svg", 1, "the model has 3");
    let scores = "plot wine.covary examples/wine.csv --kind scores -o a.svg";
    refused(root, &format!("{scores} --components 1"), 2, "two components");
    refused(root, &format!("{scores} --color color"), 1, "there is no column `color`");
    refused(
        root,
        "plot wine.covary examples/wine.csv --kind forecast -o a.svg",
        1,
        "fit --model dfm --time COLUMN",
    );
    refused(root, "plot months.covary --kind forecast -o a.svg", 2, "covary plot MODEL DATA --kind forecast");
    let months = "plot months.covary examples/months.csv -o a.svg --kind";
    refused(
        root,
        &format!("{months} factors --steps 3"),
        2,
        "--steps goes with --kind forecast, not factors",
    );
    refused(
        root,
        &format!("{months} forecast --columns moon"),
        2,
        "the model has no column `moon`; it has `harbor`",
    );
    refused(root, &format!("{months} map"), 1, "--coordinates FILE");
    refused(root, &format!("{months} scores"), 1, "single rows");
    refused(
        root,
        "plot months.covary --kind map --show sd -o a.svg",
        2,
        "covary plot MODEL DATA --kind map --show sd",
    );
    refused(root, "plot wine.covary --kind hinton --width 3 -o a.svg", 2, "200 to 8000");
    assert!(!root.join("a.svg").exists(), "nothing is left behind");
    fs::write(root.join("words.csv"), "name,town\nx,y\n").expect("writable");
    refused(root, "plot words.csv --kind missing -o a.svg", 1, "words.csv");
}

#[test]
fn a_figure_for_print_has_the_width_asked_for_and_its_letters() {
    let folder = folder_with_models();
    let root = folder.path();
    let scores = "plot -q wine.covary examples/wine_gaps.csv --kind scores --color cultivar";
    let read = |name: &str| fs::read(root.join(name)).expect("written");
    for width in ["8cm", "80mm", "3.149606in"] {
        succeed(root, &format!("{scores} --width {width} -o a.pdf"));
        let pdf = read("a.pdf");
        let text = String::from_utf8_lossy(&pdf);
        assert!(text.starts_with("%PDF-1.7") && text.contains("/MediaBox [0 0 226.77 "), "{width}");
        assert!(text.contains("COVARY+DejaVuSans ") && text.contains("/FontFile2"), "fonts are in the file");
    }
    succeed(root, &format!("{scores} --width 8cm -o again.pdf"));
    succeed(root, &format!("{scores} --width 80mm -o a.pdf"));
    assert_eq!(read("a.pdf"), read("again.pdf"), "the same bytes");
    // Twice the letters in twice the width: the same drawing, enlarged.
    let small = succeed(root, &format!("{scores} --width 302")).out;
    let large = succeed(root, &format!("{scores} --width 604 --font-size 16.5")).out;
    let body = |svg: &str| svg.split_once('\n').expect("lines").1.to_owned();
    assert_eq!(body(&small), body(&large));
    assert!(
        large.starts_with("<svg") && large.contains("width=\"604\"") && large.contains("viewBox=\"0 0 302 ")
    );
}

#[test]
fn rows_have_the_names_and_ellipses_asked_for() {
    let folder = folder_with_models();
    let root = folder.path();
    let scores = "plot -q wine.covary examples/wine_gaps.csv --kind scores";
    let numbers = |more: &str| -> Value {
        serde_json::from_str(&succeed(root, &format!("{scores} {more} --json")).out).expect("JSON")
    };
    let count = |n: &Value, what: &str| n[what].as_array().expect("a list").len();
    let groups = numbers("--color cultivar");
    assert_eq!((count(&groups, "group_ellipses"), count(&groups, "ellipses")), (3, 0));
    let rows = numbers("--color cultivar --ellipses rows");
    assert_eq!((count(&rows, "group_ellipses"), count(&rows, "ellipses")), (0, 20));
    let none = numbers("--color cultivar --ellipses none");
    assert_eq!((count(&none, "group_ellipses"), count(&none, "ellipses")), (0, 0));
    let named = numbers("--label cultivar");
    assert_eq!(named["points"][0]["label"], "c1");
    let said = succeed(root, &format!("{scores} --label cultivar"));
    assert!(said.out.contains("<title>c1, row 1: "));
    refused(root, &format!("{scores} --label moon -o a.svg"), 1, "there is no column `moon`");
}

#[test]
fn names_of_columns_stay_text() {
    let folder = folder_with_examples();
    let root = folder.path();
    let row = |i: u32| {
        let (a, b) = (f64::from(i % 7), f64::from(i % 5));
        let last = if i.is_multiple_of(6) { String::new() } else { (b * 1.5 + a).to_string() };
        format!("{a},{},{},{last}\n", 2.0 * a + b, a - b)
    };
    let table = "<b>x</b>,\"a \"\"q\"\" & b\",🍷,עמודה\n".to_owned() + &(0..40).map(row).collect::<String>();
    fs::write(root.join("odd.csv"), table).expect("writable");
    succeed(root, "fit -q odd.csv --components 2 -o odd.covary");
    for kind in ["hinton", "loadings"] {
        let said = succeed(root, &format!("plot -q odd.covary --kind {kind}"));
        assert!(said.out.contains("&lt;b&gt;x&lt;/b&gt;") && !said.out.contains("<b>"), "{kind}");
    }
    for kind in ["circle", "contributions"] {
        let said = succeed(root, &format!("plot -q odd.covary --kind {kind}"));
        assert!(said.out.contains("עמודה") && !said.out.contains("<b>"), "{kind}");
    }
    for kind in ["correlation", "patterns"] {
        let said = succeed(root, &format!("plot -q odd.csv --kind {kind}"));
        assert!(said.out.contains("עמודה") && !said.out.contains("<b>"), "{kind}");
    }
    for kind in ["biplot", "covariance", "missing", "samples", "density", "calibration"] {
        let said = succeed(root, &format!("plot -q odd.covary odd.csv --kind {kind}"));
        assert!(said.out.contains("עמודה") && !said.out.contains("<b>"), "{kind}");
    }
}

#[test]
fn columns_stand_where_a_table_says() {
    let folder = folder_with_models();
    let root = folder.path();
    let places = "name,lat,lon\nharbor,44,8\nbridge,44.2,8.2\nmill,44.4,8.1\nlake,44.6,8.4\nforest,45,8\npass,45.5,7.5\nsummit,45.6,7.4\n";
    fs::write(root.join("places.csv"), places).expect("writable");
    let numbers = |files: &str| -> Value {
        let said = succeed(root, &format!("plot -q {files} --kind map --coordinates places.csv --json"));
        serde_json::from_str(&said.out).expect("JSON")
    };
    let model: Value =
        serde_json::from_str(&succeed(root, "inspect months.covary --json").out).expect("JSON");
    let found = numbers("months.covary --components 2");
    assert_eq!(found["places"].as_array().expect("places").len(), 7);
    assert_eq!(found["places"][5]["latitude"], 45.5);
    assert_eq!(found["places"][5]["value"], model["loadings"][5][1], "{model:#}");
    // The errors of held-out blocks and the deviations of imputed cells; loadings if nothing else is asked for.
    for (show, words) in
        [("error", "Root mean squared error of"), ("sd", "Standard deviation of 144 imputed values")]
    {
        let found = numbers(&format!("months.covary examples/months.csv --show {show}"));
        assert!(found["name"].as_str().expect("a name").starts_with(words), "{}", found["name"]);
        let values = found["places"]
            .as_array()
            .expect("places")
            .iter()
            .map(|p| p["value"].as_f64().expect("a number"));
        assert!(values.clone().count() == 7 && values.clone().all(|v| v > 0.2 && v < 2.0), "{found:#}");
    }
    assert_eq!(numbers("months.covary examples/months.csv"), numbers("months.covary"));

    let map = "plot months.covary --kind map -o a.svg --coordinates";
    fs::write(root.join("few.csv"), "name,lat,lon\nharbor,44,8\n").expect("writable");
    refused(root, &format!("{map} few.csv"), 1, "few.csv: has no coordinates of `bridge`, `mill`");
    fs::write(root.join("bare.csv"), "name,x,y\nharbor,44,8\n").expect("writable");
    refused(
        root,
        &format!("{map} bare.csv"),
        1,
        "`latitude` and `longitude`, or `lat` and `lon`; it has `name`, `x`, `y`",
    );
    fs::write(root.join("words.csv"), "name,lat,lon\nharbor,north,8\nmill,3,4\n").expect("writable");
    refused(root, &format!("{map} words.csv"), 1, "`lat` must hold numbers, and row 1 has `north`");
}
