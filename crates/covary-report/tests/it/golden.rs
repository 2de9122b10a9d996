//! Every kind is kept: its numbers, which the command wrote for the wine table, and the bytes of its
//! figure. Instruction sets round differently, so figures are drawn from the kept numbers.
//!
//! `COVARY_REWRITE_GOLDEN=1 cargo test --release -p covary-report golden` draws them again; look at every
//! one that changed. `COVARY_FIGURES=DIR` also writes PNGs, light, dark and for a printer in gray.

use covary::Estimator;
use covary::family::{Components, Family, Request};
use covary::infer::MixtureEm;
use covary::learned::Learned;
use covary_report::plot::{
    Kind, biplot, calibration, circle, contributions, correlation, covariance, curves, density, diagram,
    eigenfunctions, factors, forecast, hinton, images, intervals, loadings, map, missing, mixture, outliers,
    pairs, path, patterns, relevance, samples, scores, scree, select, sources, trace, views,
};
use covary_report::{Style, Svg, Theme};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn kept<T: DeserializeOwned>(name: &str) -> T {
    let text = fs::read_to_string(folder().join(format!("{name}.json"))).expect("kept numbers");
    serde_json::from_str(&text).expect("numbers of this kind")
}

/// Draws the kept numbers of a kind.
pub(crate) fn drawn(kind: Kind, style: &Style) -> Svg {
    let name = kind.name();
    match kind {
        Kind::Scree => scree::draw(&kept(name), style),
        Kind::Hinton => hinton::draw(&kept(name), style),
        Kind::Scores => scores::draw(&kept(name), style),
        Kind::Biplot => biplot::draw(&kept(name), style),
        Kind::Loadings => loadings::draw(&kept(name), style),
        Kind::Covariance => covariance::draw(&kept(name), style),
        Kind::Trace => trace::draw(&kept(name), style),
        Kind::Relevance => relevance::draw(&kept(name), style),
        Kind::Missing => missing::draw(&kept(name), style),
        Kind::Intervals => intervals::draw(&kept(name), style),
        Kind::Select => select::draw(&kept(name), style),
        Kind::Samples => samples::draw(&kept(name), style),
        Kind::Map => map::draw(&kept(name), style),
        Kind::Images => images::draw(&kept(name), style),
        Kind::Views => views::draw(&kept(name), style),
        Kind::Sources => sources::draw(&kept(name), style),
        Kind::Mixture => mixture::draw(&kept(name), style),
        Kind::Forecast => forecast::draw(&kept(name), style),
        Kind::Factors => factors::draw(&kept(name), style),
        Kind::Path => path::draw(&kept(name), style),
        Kind::Eigenfunctions => eigenfunctions::draw(&kept(name), style),
        Kind::Curves => curves::draw(&kept(name), style),
        Kind::Circle => circle::draw(&kept(name), style),
        Kind::Contributions => contributions::draw(&kept(name), style),
        Kind::Correlation => correlation::draw(&kept(name), style),
        Kind::Pairs => pairs::draw(&kept(name), style),
        Kind::Density => density::draw(&kept(name), style),
        Kind::Patterns => patterns::draw(&kept(name), style),
        Kind::Calibration => calibration::draw(&kept(name), style),
        Kind::Outliers => outliers::draw(&kept(name), style),
        Kind::Diagram => diagram::draw(&kept(name), style),
    }
}

#[test]
fn every_kind_has_the_bytes_that_were_looked_at() {
    let rewrite = std::env::var_os("COVARY_REWRITE_GOLDEN").is_some();
    for kind in Kind::ALL {
        let (svg, path) = (drawn(kind, &Style::default()), folder().join(format!("{}.svg", kind.name())));
        if rewrite {
            fs::write(&path, svg.as_str()).expect("writable");
        }
        let golden = fs::read_to_string(&path).expect("a golden figure");
        assert!(
            svg.as_str() == golden,
            "{} is drawn otherwise; look at it, then COVARY_REWRITE_GOLDEN=1",
            kind.name()
        );
    }
}

#[test]
fn every_kind_becomes_pixels_in_both_themes_and_any_size() {
    let pictures = std::env::var_os("COVARY_FIGURES").map(PathBuf::from);
    for kind in Kind::ALL {
        for (theme, word) in [(Theme::Light, "light"), (Theme::Dark, "dark")] {
            let svg = drawn(kind, &Style { theme, ..Style::default() });
            let png = covary_png::png(svg.as_str(), svg.size(), 2.0).expect("of an ordinary size");
            assert!(png.starts_with(b"\x89PNG"));
            if let Some(folder) = &pictures {
                fs::write(folder.join(format!("{}-{word}.png", kind.name())), png).expect("writable");
            }
        }
        for (width, height) in [(200.0, 200.0), (1600.0, 300.0)] {
            let style = Style { width: Some(width), height: Some(height), ..Style::default() };
            let svg = drawn(kind, &style);
            assert_eq!(svg.size(), (width, height));
            assert!(
                !svg.as_str().contains("NaN") && covary_png::png(svg.as_str(), svg.size(), 1.0).is_ok(),
                "{}",
                kind.name()
            );
        }
    }
}

#[test]
fn every_kind_fits_a_column_of_a_page() {
    let wide = 8.0 / 2.54 * 96.0;
    let folder = std::env::var_os("COVARY_FIGURES").map(PathBuf::from);
    for kind in Kind::ALL {
        let svg = drawn(kind, &Style { width: Some(wide), ..Style::default() });
        let (name, text) = (kind.name(), svg.as_str());
        assert!((svg.size().0 - wide).abs() < 0.01 && svg.size().1 < 6.0 * wide, "{name}: {:?}", svg.size());
        // 6 points are 8 pixels.
        let sizes =
            text.split("font-size=\"").skip(1).filter_map(|t| t.split('"').next()?.parse::<f64>().ok());
        assert!(sizes.fold(99.0, f64::min) >= 8.0, "{name}");
        let pdf = covary_png::pdf(text, &svg.title()).expect("a figure");
        assert!(
            pdf.starts_with(b"%PDF-1.7") && String::from_utf8_lossy(&pdf).contains("/MediaBox [0 0 226.77"),
            "{name}"
        );
        if let Some(folder) = &folder {
            let png = covary_png::png(text, svg.size(), 2.0).expect("of an ordinary size");
            fs::write(folder.join(format!("{name}-8cm.png")), png).expect("writable");
            fs::write(folder.join(format!("{name}-8cm.pdf")), pdf).expect("writable");
        }
    }
}

#[test]
fn figures_tell_those_who_cannot_see_them() {
    for kind in Kind::ALL {
        let svg = drawn(kind, &Style::default());
        let text = svg.as_str();
        assert!(
            text.contains("role=\"img\"") && text.contains("<title>") && text.contains("<desc>"),
            "{}",
            kind.name()
        );
    }
}

/// Whether two documents say the same, numbers to a thousandth.
fn agree(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().expect("a number"), b.as_f64().expect("a number"));
            (a - b).abs() <= 1e-3 * (a.abs() + b.abs()) + 1e-6
        }
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| agree(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| agree(a, b)))
        }
        (a, b) => a == b,
    }
}

#[test]
fn the_kept_numbers_are_those_of_the_wine() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/wine_gaps.csv");
    let table = covary::io::csv::read(fs::File::open(path).expect("a shipped example")).expect("a table");
    let data = table.dataset();
    let learned = super::fitted(data, &covary::Spec { standardize: true, ..covary::Spec::ppca(3) }, "em");
    let labels = (0..data.n_rows()).map(|i| table.text(i, 13)).collect();
    let color = scores::ColorBy::Groups { name: "cultivar".to_owned(), labels };
    let (spec, method) = (
        covary::Spec { standardize: true, ..covary::Spec::ppca(2) },
        MixtureEm { tolerance: 1e-6, ..MixtureEm::of(3) },
    );
    let fit = method.fit(data, &spec).expect("three models");
    let models = Learned::of_mixture(fit, data, &spec, (&method).into());
    let options = covary::select::SelfCheckOptions::default();
    let hidden = learned
        .check_by_refit(&Request::new(Family::Ppca), data, &options, &mut ())
        .expect("its own table")
        .cells;
    let now = [
        (Kind::Mixture, serde_json::to_value(mixture::numbers(&models, data).expect("its own table"))),
        (Kind::Scree, serde_json::to_value(scree::numbers(&learned, Some(data)).expect("its own table"))),
        (Kind::Hinton, serde_json::to_value(hinton::numbers(&learned).expect("components"))),
        (
            Kind::Scores,
            serde_json::to_value(
                scores::numbers(&learned, data, (1, 2), &scores::Rows::by(Some(&color))).expect("two"),
            ),
        ),
        (
            Kind::Biplot,
            serde_json::to_value(
                biplot::numbers(&learned, data, (1, 2), &scores::Rows::by(None)).expect("two"),
            ),
        ),
        (Kind::Covariance, serde_json::to_value(covariance::numbers(&learned, data).expect("its own table"))),
        (Kind::Missing, serde_json::to_value(missing::numbers(data, Some(&learned)).expect("its own table"))),
        (Kind::Circle, serde_json::to_value(circle::numbers(&learned, (1, 2)).expect("two"))),
        (
            Kind::Contributions,
            serde_json::to_value(contributions::numbers(&learned, None).expect("components")),
        ),
        (Kind::Correlation, serde_json::to_value(correlation::numbers(data))),
        (
            Kind::Pairs,
            serde_json::to_value(pairs::numbers(&learned, data, &[], Some(&color)).expect("three")),
        ),
        (Kind::Density, serde_json::to_value(density::numbers(&learned, data).expect("missing values"))),
        (Kind::Patterns, serde_json::to_value(patterns::numbers(data))),
        (
            Kind::Outliers,
            serde_json::to_value(outliers::numbers(&learned, data, None).expect("its own table")),
        ),
        (
            Kind::Calibration,
            serde_json::to_value(calibration::numbers(&learned, data, &hidden).expect("cells")),
        ),
    ];
    for (kind, numbers) in now {
        let numbers = numbers.expect("JSON");
        let path = folder().join(format!("{}.json", kind.name()));
        if std::env::var_os("COVARY_REWRITE_GOLDEN").is_some()
            && !(path.exists() && agree(&numbers, &kept::<Value>(kind.name())))
        {
            fs::write(&path, serde_json::to_string(&numbers).expect("JSON") + "\n").expect("writable");
        }
        assert!(agree(&numbers, &kept::<Value>(kind.name())), "{}: {numbers:#}", kind.name());
    }
}

#[test]
fn the_kept_times_are_those_of_the_months() {
    let (data, learned) = super::months();
    let now = [
        (
            Kind::Forecast,
            serde_json::to_value(forecast::numbers(&learned, &data, None, None).expect("its own table")),
        ),
        (Kind::Factors, serde_json::to_value(factors::numbers(&learned, &data).expect("its own table"))),
    ];
    for (kind, numbers) in now {
        let (numbers, path) = (numbers.expect("JSON"), folder().join(format!("{}.json", kind.name())));
        if std::env::var_os("COVARY_REWRITE_GOLDEN").is_some() && !path.exists() {
            fs::write(&path, serde_json::to_string(&numbers).expect("JSON") + "\n").expect("writable");
        }
        assert!(agree(&numbers, &kept::<Value>(kind.name())), "{}", kind.name());
    }
}

#[test]
fn the_kept_path_is_that_of_the_wine() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/wine_gaps.csv");
    let table = covary::io::csv::read(fs::File::open(path).expect("a shipped example")).expect("a table");
    let request = Request { n_components: Some(Components::Number(3)), ..Request::new(Family::Spca) };
    let learned = request.learn(table.dataset()).expect("three components");
    let numbers = path::numbers(&learned, table.dataset()).expect("its own table");
    // What the model keeps is on the path, by the names of its columns.
    let model = &learned.linear().expect("one model").model;
    for (k, trails) in numbers.components.iter().enumerate() {
        let kept: Vec<&str> = trails.iter().filter(|t| t.kept).map(|t| t.column.as_str()).collect();
        let own = learned.columns.iter().enumerate().filter(|(j, _)| model.loadings()[(*j, k)] != 0.0);
        assert_eq!(kept, own.map(|(_, name)| name.as_str()).collect::<Vec<_>>());
    }
    assert!(numbers.penalties.windows(2).all(|p| p[0] < p[1]));
    let numbers = serde_json::to_value(numbers).expect("JSON");
    let file = folder().join("path.json");
    if std::env::var_os("COVARY_REWRITE_GOLDEN").is_some() && !file.exists() {
        fs::write(&file, serde_json::to_string(&numbers).expect("JSON") + "\n").expect("writable");
    }
    assert!(agree(&numbers, &kept::<Value>("path")), "{numbers:#}");
    let dense = super::fitted(table.dataset(), &covary::Spec::ppca(2), "em");
    assert!(matches!(path::numbers(&dense, table.dataset()), Err(covary_report::Error::NoPath)));
}

#[test]
fn the_kept_diagram_is_that_of_two_factors_of_the_wine() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/wine.csv");
    let table = covary::io::csv::read(fs::File::open(path).expect("a shipped example")).expect("a table");
    let learned = super::rotated_factors(table.dataset());
    let numbers = serde_json::to_value(diagram::numbers(&learned).expect("two factors")).expect("JSON");
    let file = folder().join("diagram.json");
    if std::env::var_os("COVARY_REWRITE_GOLDEN").is_some() && !file.exists() {
        fs::write(&file, serde_json::to_string(&numbers).expect("JSON") + "\n").expect("writable");
    }
    assert!(agree(&numbers, &kept::<Value>("diagram")), "{numbers:#}");
}

#[test]
fn the_kept_curves_are_those_of_the_children() {
    let (data, learned) = super::children();
    let now = [
        (
            Kind::Eigenfunctions,
            serde_json::to_value(eigenfunctions::numbers(&learned).expect("a model of curves")),
        ),
        (Kind::Curves, serde_json::to_value(curves::numbers(&learned, &data).expect("its own table"))),
    ];
    for (kind, numbers) in now {
        let (numbers, path) = (numbers.expect("JSON"), folder().join(format!("{}.json", kind.name())));
        if std::env::var_os("COVARY_REWRITE_GOLDEN").is_some() && !path.exists() {
            fs::write(&path, serde_json::to_string(&numbers).expect("JSON") + "\n").expect("writable");
        }
        assert!(agree(&numbers, &kept::<Value>(kind.name())), "{}", kind.name());
    }
}

#[test]
fn the_kept_sources_are_those_of_the_wine() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/wine.csv");
    let table = covary::io::csv::read(fs::File::open(path).expect("a shipped example")).expect("a table");
    let request = Request { n_components: Some(Components::Number(4)), ..Request::new(Family::Ica) };
    let learned = request.learn(table.dataset()).expect("four sources");
    let numbers = sources::numbers(&learned, table.dataset()).expect("its own table");
    let numbers = serde_json::to_value(numbers).expect("JSON");
    assert!(agree(&numbers, &kept::<Value>("sources")), "{numbers:#}");
}

#[test]
fn long_sources_keep_the_least_and_the_largest_of_each_place() {
    // A saw-tooth and a square wave, which are sources themselves, over 4000 rows: five at each place.
    let waves =
        covary::Matrix::from_fn(4000, 2, |i, j| if j == 0 { (i % 19) as f64 } else { ((i / 7) % 2) as f64 });
    let data = covary::Dataset::new(waves).expect("a table");
    let learned = Request::new(Family::Ica).learn(&data).expect("two sources");
    let numbers = sources::numbers(&learned, &data).expect("its own table");
    assert_eq!((numbers.rows_per_place, numbers.sources[0].spans.len()), (5, 800));
    let all = learned.sources().expect("sources").model.transform(&data).expect("its own table");
    for (i, source) in numbers.sources.iter().enumerate() {
        for (place, &(a, b)) in source.spans.iter().enumerate() {
            let rows: Vec<f64> = (5 * place..5 * place + 5).map(|n| all[(n, i)]).collect();
            let (low, high) = (
                rows.iter().copied().fold(f64::INFINITY, f64::min),
                rows.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            );
            assert_eq!((a.min(b), a.max(b)), (low, high));
            let first = rows.iter().position(|v| *v == low || *v == high).expect("one of them");
            assert_eq!(rows[first], a);
        }
    }
}
