//! What a report says of groups, views, sources, curves and sparse components, against what their definitions give.

use covary::Dataset;
use covary::data::{Ledger, Shape, simulate};
use covary::family::{Choice, Components, Family, Grounds, Request, View};
use covary::io::Table;
use covary::learned::Learned;
use covary_report::page::{self, Facts, StructureFacts, Study, Subject};
use covary_report::plot::scores::Rows;

/// The shipped wine, with gaps or without.
fn wine(file: &str) -> Table {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(file);
    covary::io::csv::read(std::fs::File::open(path).expect("a shipped example")).expect("a table")
}

/// The facts and the page of a model of a table.
fn page_of(table: &Table, learned: &Learned) -> (Facts, String) {
    let map = learned.column_map(table.dataset().column_names()).expect("its own columns");
    let data = map.dataset(table.dataset()).expect("its own table");
    let choice =
        Choice { n_components: learned.n_components(), n_mixtures: 1, grounds: Grounds::Asked, own: None };
    let study = Study {
        axes: (1, 2),
        learned,
        filler: learned,
        linear: learned.linear().ok(),
        column_map: &map,
        data: &data,
        cells: &[],
        choice: &choice,
        rows: Rows::default(),
    };
    let ledger = Ledger::of(table.dataset());
    let subject = Subject {
        source: "wine",
        table: Some((table, &ledger)),
        study: Some(study),
        matrix: None,
        refusal: None,
        command: "covary report",
        level: 0.95,
    };
    let facts = Facts::of(&subject).expect("its own table");
    let html = page::html(&facts, &page::figures(&study, &facts));
    (facts, html)
}

fn asked(family: Family, n: usize) -> Request {
    Request { n_components: Some(Components::Number(n)), ..Request::new(family) }
}

#[test]
fn groups_are_counted_by_their_most_probable_model_and_told_apart_by_their_means() {
    let table = wine("wine_gaps.csv");
    let learned =
        Request { n_mixtures: Some(3), ..asked(Family::Mppca, 2) }.learn(table.dataset()).expect("three");
    let (facts, html) = page_of(&table, &learned);
    let Some(StructureFacts::Groups(found)) = &facts.structure else { panic!("{:?}", facts.structure) };
    let mixture = &learned.mixture().expect("a mixture").mixture;
    let shares = mixture.responsibilities(table.dataset()).expect("its own table");
    let best = |i: usize| (0..3).max_by(|&a, &b| shares[(i, a)].total_cmp(&shares[(i, b)])).expect("three");
    for (k, group) in found.groups.iter().enumerate() {
        assert_eq!(group.n_rows, (0..178).filter(|&i| best(i) == k).count());
        assert!((group.weight - mixture.weights()[k]).abs() < 1e-12);
    }
    assert_eq!(found.n_uncertain, (0..178).filter(|&i| shares[(i, best(i))] < 0.9).count());
    // Law of total variance: what lies between the means, and what lies within.
    for c in &found.columns {
        let mean: f64 = (0..3).map(|k| mixture.weights()[k] * c.means[k]).sum();
        let second: f64 =
            (0..3).map(|k| mixture.weights()[k] * (c.means[k].powi(2) + c.sds[k].powi(2))).sum();
        let within: f64 = (0..3).map(|k| mixture.weights()[k] * c.sds[k].powi(2)).sum();
        assert!((c.between - (1.0 - within / (second - mean * mean))).abs() < 1e-9, "{c:?}");
    }
    assert!(found.columns.windows(2).all(|w| w[0].between >= w[1].between));
    assert!(html.contains("What the groups are") && html.contains("data-figure=\"mixture\""));
    assert!(facts.odd_rows.is_none() && facts.not_done.iter().any(|said| said.contains("Outliers were not")));
}

#[test]
fn sources_views_and_sparse_components_have_their_part_of_the_page() {
    let table = wine("wine.csv");
    let learned = asked(Family::Ica, 3).learn(table.dataset()).expect("three sources");
    let (facts, html) = page_of(&table, &learned);
    let Some(StructureFacts::Sources(found)) = &facts.structure else { panic!("{:?}", facts.structure) };
    let fit = learned.sources().expect("sources");
    for (k, source) in found.iter().enumerate() {
        let sd = |j: usize| table.dataset().observed_variances()[j].sqrt();
        let size = |j: usize| fit.model.mixing()[(j, k)] / sd(j);
        let largest = (0..13).map(size).fold(0.0_f64, |m, v| if v.abs() > m.abs() { v } else { m });
        assert!((source.columns[0].1 - largest).abs() < 1e-12 && source.columns.len() <= 12);
        assert!((source.kurtosis - fit.kurtosis[k]).abs() < 1e-12);
    }
    assert!(
        facts.filled.is_none()
            && html.contains("What the sources are")
            && html.contains("data-figure=\"sources\"")
    );

    let names = table.dataset().column_names();
    let view = |name: &str, of: &[String]| View { name: name.to_owned(), columns: of.to_vec() };
    let views = vec![view("a<b>", &names[..5]), view("rest", &names[5..])];
    let learned = Request { views, ..asked(Family::Pcca, 2) }.learn(table.dataset()).expect("two shared");
    let (facts, html) = page_of(&table, &learned);
    let Some(StructureFacts::Views(found)) = &facts.structure else { panic!("{:?}", facts.structure) };
    let own = learned.canonical().expect("views").expect("two views");
    assert_eq!(found.correlations.as_deref(), Some(own.correlations()));
    assert_eq!(facts.model.expect("a model").n_components, 2);
    assert_eq!(found.views.iter().map(|v| v.n_columns).collect::<Vec<_>>(), [5, 8]);
    assert!(html.contains("a&lt;b&gt;") && !html.contains("a<b>"));

    let learned = asked(Family::Spca, 2).learn(table.dataset()).expect("two components");
    let (facts, html) = page_of(&table, &learned);
    let Some(StructureFacts::Sparse(found)) = &facts.structure else { panic!("{:?}", facts.structure) };
    let loadings = learned.linear().expect("one model").model.loadings();
    for k in 0..2 {
        assert_eq!(found.n_columns[k], (0..13).filter(|&j| loadings[(j, k)] != 0.0).count());
    }
    assert!(html.contains("data-figure=\"path\""));
}

#[test]
fn a_card_says_what_was_fitted_and_draws_it() {
    let (whole, _) = simulate::ppca(Shape { rows: 60, columns: 6, n_components: 2 }, 1);
    let names = ["<script>alert(1)</script>", "b", "c", "d", "e", "f"].map(str::to_owned).to_vec();
    let table =
        Dataset::with_names(simulate::hide(&whole, 0.1, 2).values().clone(), names).expect("six names");
    for (request, said) in [
        (asked(Family::Ppca, 2), "probabilistic PCA, 2 components"),
        (Request { n_mixtures: Some(2), ..asked(Family::Mppca, 1) }, "2 models"),
        (asked(Family::Bpca, 3), "Bayesian PCA"),
    ] {
        let card = page::card(&request.learn(&table).expect("a model"));
        assert!(card.contains(said) && card.contains("60 rows of 6 columns"), "{card}");
        assert!(!card.contains("<script") && card.starts_with("<div"), "{card}");
        assert_eq!(card.contains("<svg"), request.family != Family::Mppca);
    }
}
