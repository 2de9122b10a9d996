//! Exhibits of real tables, with few repeats: their numbers have tests of their own beside the code.

use crate::{made, made_of, row, shared_data};

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

#[test]
fn the_sea_is_recovered_in_every_month_though_the_paper_failed() {
    let Some(data) = shared_data() else { return };
    let record = made_of(&data, "chen-2018-fig-13", 1);
    assert!(!row(&record, "the month against climatology").1);
    let record = made_of(&data, "chen-2018-fig-14", 1);
    let (ours, agrees) = row(&record, "error of PCA = PPCA");
    assert!(!agrees && ours.contains("in 120 of 120 months"), "{ours}");
}
