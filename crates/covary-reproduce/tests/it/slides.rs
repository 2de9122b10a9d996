//! The exhibits of slides: numbers that a closed form or another program knows.

use crate::{made, made_of, row, shared_data};
use covary_report::chart::Content;

/// KL(q ‖ p) of independent coordinates has the variance 1 − ρ², KL(p ‖ q) the variance itself; both are then
/// −½ ln(1 − ρ²) = 0.8304 nats at ρ = 0.9.
#[test]
fn one_divergence_covers_both_modes_and_the_other_chooses_one() {
    let record = made("burnaev-divergences", 1);
    assert_eq!(record.agreement(), (8, 8));
    assert_eq!(row(&record, "variance of a coordinate, least KL(q ‖ p): 1 − ρ²").0, "0.1900");
    assert_eq!(row(&record, "KL(q ‖ p) there: −½ ln(1 − ρ²)").0, "0.8304");
    assert_eq!(row(&record, "KL(p ‖ q) of the other: −½ ln(1 − ρ²)").0, "0.8304");
    for panel in record.charts.iter().flat_map(|c| &c.panels) {
        let Content::Curves(curves) = &panel.content else { panic!("curves") };
        assert!(curves.series.iter().all(|s| s.points.len() == 121), "lines are closed");
    }
}

/// numpy's SVD of the same centered digits: shares of 14.8906, 54.4964, 89.4303 and 98.8203 %.
#[test]
fn the_scree_of_the_digits_is_that_of_their_singular_values() {
    let record = made("linderman-2022-scree", 1);
    assert_eq!(record.agreement(), (4, 4));
    for (quantity, percent) in [
        ("1 component, %", "14.8906"),
        ("5 components, %", "54.4964"),
        ("20 components, %", "89.4303"),
        ("40 components, %", "98.8203"),
    ] {
        assert_eq!(row(&record, quantity).0, percent);
    }
}

/// numpy's eigenvalues of the 6131 threes: 364425, 270873, 232493, 160459, their sum 2922506.
#[test]
fn threes_have_the_spectrum_of_numpy_and_come_back_from_all_components() {
    let Some(data) = shared_data().filter(|d| d.has("mnist")) else { return };
    let record = made_of(&data, "burnaev-spectrum", 1);
    assert_eq!(record.agreement(), (3, 3));
    let Content::Pictures(pictures) = &record.charts[0].panels[0].content else { panic!("pictures") };
    let captions: Vec<&str> = pictures.tiles.iter().map(|t| t.0.as_str()).collect();
    assert_eq!(captions, ["mean", "λ = 364425", "λ = 270873", "λ = 232493", "λ = 160459"]);
    let Content::Curves(discarded) = &record.charts[1].panels[1].content else { panic!("curves") };
    assert!((discarded.series[0].points[0].1 - (2_922_506.343_8 - 364_424.896_8)).abs() < 0.01);
    let record = made_of(&data, "burnaev-reconstructions", 1);
    assert_eq!(record.agreement(), (2, 2));
}

#[test]
fn a_hundred_points_without_30_percent_lie_about_where_they_lay() {
    let Some(data) = shared_data().filter(|d| d.has("oil_flow")) else { return };
    let record = made_of(&data, "burnaev-missing", 20);
    assert!(row(&record, "EM handles the missing values").1);
    let (ours, _) = row(&record, "it stays whichever cells are removed");
    let rv: f64 = ours.split(' ').nth(1).expect("a number").parse().expect("a number");
    assert!((0.85..0.95).contains(&rv), "{ours}");
    // What the reason says: with the plane known, the scores stay above the bound.
    let why = record.tables[0].rows[1].why.as_deref().expect("it differs");
    let known: f64 = why
        .split("RV is ")
        .nth(1)
        .and_then(|t| t.split(' ').next())
        .expect("said")
        .parse()
        .expect("a number");
    assert!(known > 0.9 && known > rv, "{why}");
}
