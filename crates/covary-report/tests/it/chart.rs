//! Charts: every content as it was looked at, any size, and numbers that are none.

use super::small;
use covary_report::chart::{Axis, Chart, Content, Curves, Look, Panel, Pictures, Series};
use covary_report::plot::map::{self, Place};
use covary_report::plot::scores;
use covary_report::{Style, Theme};
use std::collections::BTreeMap;
use std::path::Path;

/// One panel of every content and one series of every look.
fn every_content() -> Chart {
    let up = |shift: f64| (1..=5).map(|k| (f64::from(k), f64::from(k).powi(2) + shift)).collect::<Vec<_>>();
    let looks = [Look::Line, Look::Dashed, Look::Points, Look::Hollow, Look::Joined];
    let named = looks.iter().enumerate().map(|(k, look)| {
        Series::new(&format!("<{look:?}>"), *look, up(4.0 * k as f64)).color(k).errors(vec![1.5; 5])
    });
    let words = Series::new("", Look::Words, vec![(2.0, 30.0)]).words(&["a & b"]);
    let bars = |name: &str, k: usize| Series::new(name, Look::Bars, vec![(1.0, 2.0), (2.0, -1.0)]).color(k);
    let matrix = vec![vec![1.0, -0.5, 0.0], vec![0.2, 0.9, -1.0]];
    let tiles = vec![("one".to_owned(), vec![0.0, 0.5, 1.0, 0.25]), ("two".to_owned(), vec![1.0; 4])];
    Chart {
        title: "Every content".to_owned(),
        subtitle: "made up".to_owned(),
        note: "A note.".to_owned(),
        across: 2,
        panels: vec![
            Panel::curves(
                "looks",
                Curves { x: Axis::new("x"), y: Axis::new("y"), series: named.chain([words]).collect() },
            ),
            Panel::curves(
                "bars",
                Curves {
                    x: Axis::new("").named(&["left", "right"]),
                    y: Axis::new("height"),
                    series: vec![bars("first", 0), bars("second", 1)],
                },
            ),
            Panel::squares("squares", matrix.clone(), 1.0, "components"),
            Panel::shades("shades", matrix, 1.0),
            Panel::curves(
                "a short logarithmic axis",
                Curves {
                    x: Axis::new("rows").log().between(18.0, 450.0),
                    y: Axis::new("α").log(),
                    series: vec![Series::new("falling", Look::Joined, vec![(20.0, 0.1), (400.0, 30.0)])],
                },
            ),
            Panel {
                title: "pictures".to_owned(),
                content: Content::Pictures(Pictures { shape: (2, 2), range: (0.0, 1.0), tiles }),
            },
        ],
    }
}

#[test]
fn every_content_has_the_bytes_that_were_looked_at() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/chart.svg");
    let svg = every_content().draw(&Style::default());
    if std::env::var_os("COVARY_REWRITE_GOLDEN").is_some() {
        std::fs::write(&path, svg.as_str()).expect("writable");
    }
    if let Some(folder) = std::env::var_os("COVARY_FIGURES") {
        let png = covary_png::png(svg.as_str(), svg.size(), 1.0).expect("of an ordinary size");
        std::fs::write(Path::new(&folder).join("chart.png"), png).expect("writable");
    }
    let golden = std::fs::read_to_string(&path).expect("a golden figure");
    assert!(svg.as_str() == golden, "charts are drawn otherwise; look at one, then COVARY_REWRITE_GOLDEN=1");
}

#[test]
fn charts_go_to_json_and_back_and_keep_to_any_size() {
    let chart = every_content();
    let text = serde_json::to_string(&chart).expect("JSON");
    assert_eq!(serde_json::from_str::<Chart>(&text).expect("a chart"), chart);
    for (width, height) in [(200.0, 200.0), (1600.0, 300.0)] {
        let style = Style { theme: Theme::Dark, width: Some(width), height: Some(height) };
        let svg = chart.draw(&style);
        assert_eq!(svg.size(), (width, height));
        assert!(!svg.as_str().contains("NaN") && covary_png::png(svg.as_str(), svg.size(), 1.0).is_ok());
    }
}

#[test]
fn what_is_no_number_is_not_drawn_and_nothing_at_all_is_no_panic() {
    let looks = [Look::Line, Look::Points, Look::Joined, Look::Bars, Look::Words];
    let points = vec![(1.0, f64::NAN), (2.0, 1.0), (f64::INFINITY, 3.0)];
    let series = looks
        .map(|look| Series::new("s", look, points.clone()).errors(vec![f64::NAN; 3]).words(&["a", "b", "c"]));
    let curves = Curves { x: Axis::new("x"), y: Axis::new("y"), series: series.to_vec() };
    let empty = Curves { x: Axis::new(""), y: Axis::new("").log(), series: Vec::new() };
    let panels = vec![
        Panel::curves("", curves),
        Panel::curves("", empty),
        Panel::squares("", Vec::new(), 0.0, ""),
        Panel::shades("", vec![Vec::new()], 0.0),
    ];
    let svg = Chart { panels, ..Chart::default() }.draw(&Style::default());
    assert!(!svg.as_str().contains("NaN") && !svg.as_str().contains("inf"));
    assert!(Chart::default().draw(&Style::default()).as_str().starts_with("<svg"));
}

/// How often each text that is a number stands in a drawing.
fn ticks(chart: &Chart) -> BTreeMap<String, usize> {
    let svg = chart.draw(&Style::default()).to_string();
    let mut counts = BTreeMap::new();
    for text in svg.split("<text").skip(1).filter_map(|t| t.split('>').nth(1)?.split('<').next()) {
        if text.replace('−', "-").parse::<f64>().is_ok() {
            *counts.entry(text.to_owned()).or_default() += 1;
        }
    }
    counts
}

#[test]
fn scores_of_two_panels_have_one_range() {
    let (table, learned) = small();
    let near = scores::numbers(&learned, &table, (1, 2), &scores::Rows::by(None)).expect("components");
    let mut far = near.clone();
    far.points.iter_mut().for_each(|p| (p.x, p.y) = (10.0 * p.x, 10.0 * p.y));
    let panels = vec![Panel::scores("near", near), Panel::scores("far", far)];
    let ticks = ticks(&Chart { panels, ..Chart::default() });
    assert!(ticks.len() > 3 && ticks.values().all(|n| n % 2 == 0), "{ticks:?}");
}

#[test]
fn maps_that_are_compared_end_at_one_color() {
    let grid = |most: f64| -> Vec<Place> {
        let place = |k: u32| Place {
            latitude: f64::from(k / 4),
            longitude: f64::from(k % 4),
            value: most * f64::from(k) / 15.0,
        };
        (0..16).map(place).collect()
    };
    let panel =
        |most: f64| Panel::map("a map", map::numbers("", "", &grid(most)).expect("places"), Some(7.0));
    let chart = Chart { panels: vec![panel(7.0), panel(2.0)], ..Chart::default() };
    let ticks = ticks(&chart);
    assert_eq!((ticks.get("7"), ticks.get("3.5"), ticks.get("2")), (Some(&2), Some(&2), None), "{ticks:?}");
    let json = serde_json::to_string(&chart).expect("numbers");
    assert_eq!(serde_json::from_str::<Chart>(&json).expect("a chart"), chart);
    let mut empty = map::numbers("", "", &grid(1.0)).expect("places");
    empty.places.clear();
    let chart = Chart { panels: vec![Panel::map("nowhere", empty, None)], ..Chart::default() };
    assert!(!chart.draw(&Style::default()).as_str().contains("NaN"));
}
