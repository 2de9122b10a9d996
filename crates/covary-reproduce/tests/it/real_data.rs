//! Exhibits of real tables, with few repeats: their numbers have tests of their own beside the code.

use crate::{made, made_of, row, shared_data};
use covary_reproduce::Record;

#[test]
fn viruses_have_their_figure_and_their_table() {
    let Some(data) = shared_data() else { return };
    let record = made_of(&data, "tipping-bishop-1999-fig-1", 10);
    assert_eq!(row(&record, "cells removed"), ("136 of 684", true));
    assert!(row(&record, "scores without these cells").1);
    let record = made_of(&data, "tipping-bishop-1999-table-1", 1000);
    assert!(row(&record, "order").1);
    assert_eq!(record.tables[1].rows.iter().filter(|r| r.agrees).count(), 6, "numbers of parameters");
}

#[test]
fn flows_are_told_apart_by_twelve_models_and_by_classes() {
    let Some(data) = shared_data() else { return };
    let record = made_of(&data, "tipping-bishop-1999b-oil-flow", 1);
    assert!(row(&record, "12 models").1 && !row(&record, "3 models").1);
    let record = made_of(&data, "tipping-bishop-1999b-classes", 1);
    assert!(row(&record, "11 components").1 && row(&record, "10 components, 30 % of the pixels removed").1);
}

#[test]
fn priors_switch_six_and_five_of_nine_components_off() {
    let record = made("bishop-1999-hinton", 2);
    let (agree, all) = record.agreement();
    assert_eq!(agree, all);
}

/// The first number of a row's own entry, or of its first column.
fn first_number(record: &Record, quantity: &str) -> f64 {
    let mut rows = record.tables.iter().flat_map(|table| &table.rows);
    let row = rows.find(|row| row.quantity == quantity).unwrap_or_else(|| panic!("no row `{quantity}`"));
    let ours = row.parts.first().map_or(&row.ours, |part| &part.ours);
    ours.split([' ', ';', ',']).next().expect("a number").parse().expect("a number")
}

/// Errors behind the first mask by numpy, from the same definitions written independently: PCA through the
/// eigenvectors of the 492 × 492 Gram matrix, gaps by conditional means of the complete months' closed form, a floor
/// of 0.07.
#[test]
fn the_sea_is_recovered_by_anomalies_and_many_components_not_by_weights_or_the_floor() {
    let Some(data) = shared_data() else { return };
    let record = made_of(&data, "chen-2018-fig-13", 1);
    assert!(!row(&record, "the month against climatology").1);
    let record = made_of(&data, "chen-2018-fig-14", 1);
    let (ours, agrees) = row(&record, "error of PCA = PPCA");
    assert!(!agrees && ours.contains("in 120 of 120 months"), "{ours}");
    for (step, numpy) in [
        ("the paper's routine: temperatures of the globe, PCA of 20 components", 14.3),
        ("the routine without columns of land", 14.3),
        ("the routine of anomalies", 0.394),
        ("20 components of the complete months, gaps integrated out", 0.393),
        ("20 components, weighted by area", 0.393),
        ("20 components, with the noise floor, which they do not reach", 0.393),
        ("all components above the floor, without the floor itself", 0.163),
        ("all components above the floor, with it", 0.171),
        ("the same, weighted by area, without the floor", 0.168),
        ("the same, weighted by area, with the floor", 0.178),
    ] {
        assert_eq!(first_number(&record, step), numpy, "{step}");
    }
    // Behind the mask of 1893 the same EM loses to climatology; behind this one it does not.
    assert!(first_number(&record, "20 components of all months, EM until it converges") < 0.4);
}

/// Of every sixth cell: the whole exhibit has 1469 cells and 0.390, 0.345 and 11.0 °C.
#[test]
fn with_gaps_in_every_month_bayesian_pca_is_best_and_the_papers_routine_fails_for_its_temperatures() {
    let Some(data) = shared_data() else { return };
    let record = made_of(&data, "chen-2018-fig-14-all-months", 1);
    assert!(row(&record, "PCA and PPCA share their error").1);
    let climatology = 0.5;
    let [ppca, bayes] =
        ["PPCA, 20 components", "Bayesian PCA, 30 components"].map(|way| first_number(&record, way));
    assert!(bayes < ppca && ppca < climatology, "{bayes} {ppca}");
    assert!(
        first_number(&record, "the paper's routine, temperatures, PCA of 20 components") > 20.0 * climatology
    );
    assert!(first_number(&record, "the paper's routine, anomalies") < climatology);
}

/// Of every sixth cell, behind masks in turns, with eight components.
#[test]
fn dynamic_factors_fill_what_masks_in_turns_hide() {
    let Some(data) = shared_data() else { return };
    let record = made_of(&data, "chen-2018-fig-14-in-time", 1);
    let turns = record.tables[0].rows.iter().find(|row| row.quantity == "masks in turns").expect("a row");
    let way = |name: &str| {
        let part = turns.parts.iter().find(|part| part.name == name).expect("a column");
        part.ours.split(',').next().and_then(|error| error.parse::<f64>().ok()).expect("a number")
    };
    let (bayes, in_time) = (way("Bayesian PCA"), way("dynamic factors"));
    assert!(in_time < bayes, "{in_time} {bayes}");
    assert!(bayes < 0.5, "below climatology: {bayes}");
    assert!(record.tables[2].rows.len() >= 4, "basins");
}
