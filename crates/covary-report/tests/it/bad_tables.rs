//! Tables that break drawings: a correct figure all the same, nothing injected, nothing outside the sheet.

use super::fitted;
use covary::data::{Shape, simulate};
use covary::learned::Learned;
use covary::{Dataset, Matrix, Spec};
use covary_report::plot::scores::ColorBy;
use covary_report::plot::{
    biplot, circle, contributions, correlation, covariance, density, hinton, loadings, missing, outliers,
    pairs, patterns, samples, scores, scree, trace,
};
use covary_report::{Style, Svg};

/// Every figure that a model and a table make without another fit.
fn figures(learned: &Learned, table: &Dataset, color: Option<&ColorBy>) -> Vec<Svg> {
    let style = Style::default();
    let mut all = vec![
        scree::draw(&scree::numbers(learned, Some(table)).expect("scree"), &style),
        scree::draw(&scree::numbers(learned, None).expect("scree"), &style),
        hinton::draw(&hinton::numbers(learned).expect("hinton"), &style),
        loadings::draw(&loadings::numbers(learned, None).expect("loadings"), &style),
        scores::draw(
            &scores::numbers(learned, table, (1, 2), &scores::Rows::by(color)).expect("scores"),
            &style,
        ),
        covariance::draw(&covariance::numbers(learned, table).expect("covariance"), &style),
        samples::draw(&samples::numbers(learned, table, 0).expect("samples"), &style),
        missing::draw(&missing::numbers(table, Some(learned)).expect("missing"), &style),
        missing::draw(&missing::numbers(table, None).expect("missing"), &style),
        contributions::draw(&contributions::numbers(learned, None).expect("contributions"), &style),
        correlation::draw(&correlation::numbers(table), &style),
        patterns::draw(&patterns::numbers(table), &style),
        outliers::draw(&outliers::numbers(learned, table, None).expect("outliers"), &style),
    ];
    all.extend(circle::numbers(learned, (1, 2)).ok().map(|n| circle::draw(&n, &style)));
    all.extend(pairs::numbers(learned, table, &[], color).ok().map(|n| pairs::draw(&n, &style)));
    all.extend(density::numbers(learned, table).ok().map(|n| density::draw(&n, &style)));
    all.extend(
        trace::numbers(&[(learned.columns[0].clone(), learned)]).ok().map(|n| trace::draw(&n, &style)),
    );
    all.extend(
        biplot::numbers(learned, table, (1, 2), &scores::Rows::by(color))
            .ok()
            .map(|n| biplot::draw(&n, &style)),
    );
    all
}

/// Well formed, finite, and small enough to open.
#[track_caller]
fn check(svg: &Svg) {
    let text = svg.as_str();
    assert!(!text.contains("NaN") && !text.contains("inf"), "{}", &text[..400]);
    assert!(text.len() < 3_000_000, "{} bytes", text.len());
    // No place far outside the sheet: a label that is cut off, or a shape that has run away.
    let (w, h) = svg.size();
    for (attribute, most) in [(" x=\"", w), (" y=\"", h)] {
        for piece in text.split("<text").skip(1).filter_map(|p| p.split(attribute).nth(1)) {
            let at: f64 = piece.split('"').next().expect("a number").parse().expect("a number");
            assert!((-1.0..=most + 1.0).contains(&at), "{at} of {most}: {}", &piece[..60.min(piece.len())]);
        }
    }
    covary_png::png(svg.as_str(), svg.size(), 1.0).expect("pixels");
}

fn named(names: &[&str], rows: usize) -> Dataset {
    let (whole, _) = simulate::ppca(Shape { rows, columns: names.len(), n_components: 2 }, 3);
    let hidden = simulate::hide(&whole, 0.1, 4);
    Dataset::with_names(hidden.into_values(), names.iter().map(|n| (*n).to_owned()).collect()).expect("names")
}

#[test]
fn names_cannot_become_markup() {
    let long = "very ".repeat(80);
    let names = [
        "<script>alert(1)</script>",
        "\"q\" & 'a'",
        "🍷👩‍🔬",
        "עמודה",
        "درجة الحرارة",
        &long,
        "]]><x",
        "a\u{0}\u{8}\u{202e}b\u{ffff}\n",
    ];
    let table = named(&names, 80);
    let learned = fitted(&table, &Spec::ppca(2), "em");
    let color = ColorBy::Groups {
        name: names[0].to_owned(),
        labels: (0..80).map(|i| names[i % 8].to_owned()).collect(),
    };
    for svg in figures(&learned, &table, Some(&color)) {
        check(&svg);
        let text = svg.as_str();
        assert!(
            !text.contains("<script")
                && !text.contains("]]>")
                && !text.contains('\u{0}')
                && !text.contains('\u{202e}')
        );
        assert!(!text.contains(&long), "long names are shortened");
        // Every & begins an entity of ours.
        let entities = ["amp;", "lt;", "gt;", "quot;", "#39;"];
        assert!(text.split('&').skip(1).all(|rest| entities.iter().any(|e| rest.starts_with(e))));
    }
}

#[test]
fn one_column_is_enough() {
    let (whole, _) = simulate::ppca(Shape { rows: 50, columns: 2, n_components: 1 }, 1);
    let learned = fitted(&whole, &Spec::ppca(1), "em");
    figures(&learned, &whole, None).iter().for_each(check);
    let single = Dataset::new(Matrix::from_fn(50, 1, |i, _| whole.row(i)[0])).expect("a table");
    check(&missing::draw(&missing::numbers(&single, None).expect("a table"), &Style::default()));
    let none = fitted(&single, &Spec::ppca(0), "em");
    check(&scree::draw(&scree::numbers(&none, Some(&single)).expect("a table"), &Style::default()));
    check(&covariance::draw(&covariance::numbers(&none, &single).expect("a table"), &Style::default()));
    check(&samples::draw(&samples::numbers(&none, &single, 0).expect("a table"), &Style::default()));
    assert!(
        hinton::numbers(&none).is_err()
            && scores::numbers(&none, &single, (1, 2), &scores::Rows::by(None)).is_err()
    );
}

#[test]
fn no_gaps_or_all_of_them_in_one_column() {
    let (whole, _) = simulate::ppca(Shape { rows: 60, columns: 4, n_components: 2 }, 1);
    let learned = fitted(&whole, &Spec::ppca(2), "em");
    figures(&learned, &whole, None).iter().for_each(check);
    let gappy =
        Dataset::new(Matrix::from_fn(60, 4, |i, j| if j == 2 && i > 9 { f64::NAN } else { whole.row(i)[j] }))
            .expect("a table");
    let learned = fitted(&gappy, &Spec::ppca(2), "em");
    figures(&learned, &gappy, None).iter().for_each(check);
    let empty = Dataset::new(Matrix::from_fn(60, 4, |i, j| if j == 2 { f64::NAN } else { whole.row(i)[j] }))
        .expect("a table");
    let svg = missing::draw(&missing::numbers(&empty, None).expect("a table"), &Style::default());
    check(&svg);
    assert!(svg.as_str().contains("100.0 %"));
}

#[test]
fn five_thousand_columns_fit_on_a_sheet() {
    let (whole, _) = simulate::ppca(Shape { rows: 30, columns: 5000, n_components: 2 }, 1);
    let table = simulate::hide(&whole, 0.01, 2);
    let learned = fitted(&table, &Spec::ppca(2), "em");
    for svg in figures(&learned, &table, None) {
        check(&svg);
        assert!(svg.size().1 < 1400.0, "{:?}", svg.size());
    }
}

#[test]
fn huge_and_tiny_numbers_have_ticks() {
    for scale in [1e-12, 1e12, 1e100] {
        let (whole, _) = simulate::ppca(Shape { rows: 40, columns: 4, n_components: 2 }, 1);
        let table = Dataset::new(Matrix::from_fn(40, 4, |i, j| scale * whole.row(i)[j])).expect("finite");
        let learned = fitted(&table, &Spec { standardize: true, ..Spec::ppca(2) }, "em");
        samples::draw(&samples::numbers(&learned, &table, 0).expect("its own table"), &Style::default());
        figures(&learned, &table, None).iter().for_each(check);
    }
}

#[test]
fn the_key_of_few_columns_ends_above_the_note() {
    let (whole, _) = simulate::ppca(Shape { rows: 50, columns: 3, n_components: 2 }, 1);
    let learned = fitted(&whole, &Spec::ppca(2), "em");
    let svg =
        contributions::draw(&contributions::numbers(&learned, None).expect("numbers"), &Style::default());
    let lowest = |says: &dyn Fn(&str) -> bool| {
        let texts =
            svg.as_str().split("<text").skip(1).filter(|text| says(text.split(['>', '<']).nth(1).unwrap()));
        let place = |text: &str| text.split(" y=\"").nth(1)?.split('"').next()?.parse::<f64>().ok();
        texts.filter_map(place).fold(f64::NEG_INFINITY, f64::max)
    };
    let (key, note) = (lowest(&|text| text == "0"), lowest(&|text| text.starts_with("A contribution")));
    assert!(0.0 < key && key + 12.0 < note, "{key} {note}");
}

#[test]
fn names_that_differ_in_two_words_stay_apart() {
    let names: Vec<String> = [2, 4, 8]
        .iter()
        .flat_map(|h| (1..=3).map(move |k| format!("concentration_in_plasma_after_{h}_hours_replicate_{k}")))
        .collect();
    let table = named(&names.iter().map(String::as_str).collect::<Vec<_>>(), 60);
    let learned = fitted(&table, &Spec::ppca(2), "em");
    let svg =
        contributions::draw(&contributions::numbers(&learned, None).expect("numbers"), &Style::default());
    for name in [2, 4, 8].iter().flat_map(|h| (1..=3).map(move |k| (h, k))) {
        let (hours, replicate) = name;
        let shown = svg.as_str().split(['>', '<']).filter(|text| {
            // Whole names are said where they are pointed at.
            text.starts_with('…')
                && text.contains(&format!("{hours}_hours"))
                && text.ends_with(&format!("{replicate}"))
        });
        assert!(shown.count() >= 2, "{name:?} in both components");
    }
}
