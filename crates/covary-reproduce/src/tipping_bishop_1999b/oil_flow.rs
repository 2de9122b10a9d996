//! Oil flow: does a mixture of PPCA that does not know the flows distinguish them?

use super::{FLOWS, Labeled};
use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::data::simulate;
use covary::infer::{ClassConditional, MixtureEm, MixtureInit, Spectral};
use covary::model::Mixture;
use covary::select::information_criteria;
use covary::{Coordinates, Dataset, Density, Estimator, LinearGaussian, Spec};
use covary_report::chart::{Axis, Chart, Curves, Look, Panel, Series, fixed};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "tipping-bishop-1999b-oil-flow",
    source: "Tipping & Bishop 1999 (Mixtures of PPCA), oil flow",
    title: "Three flows of oil, water and gas, distinguished by a mixture that does not know them",
    needs: &["oil_flow"],
    make,
};

/// Components of each model, and models, as in the paper.
const COMPONENTS: usize = 2;
const MODELS: usize = 12;
/// Numbers of models tried, and starts of each.
const MOST: usize = 15;
const STARTS: usize = 5;
/// Further starts of three models.
const RANDOM_STARTS: usize = 100;
/// Percent of rows in models of mostly their own flow from which we call flows apart.
const APART: f64 = 95.0;
/// Share of the cells that are removed.
const SHARE: f64 = 0.2;

fn spec() -> Spec {
    Spec::ppca(COMPONENTS)
}

fn fitted(table: &Dataset, n_mixtures: usize, seed: u64) -> Result<Mixture, Error> {
    Ok(MixtureEm { seed, ..MixtureEm::of(n_mixtures) }.fit(table, &spec())?.model)
}

/// From k-means alone.
fn from_k_means(table: &Dataset, n_mixtures: usize, seed: u64) -> Result<Mixture, Error> {
    let method = MixtureEm { init: MixtureInit::KMeans, restarts: 2, seed, ..MixtureEm::of(n_mixtures) };
    Ok(method.fit(table, &spec())?.model)
}

/// The flow that most rows of each model have.
fn flows(models: usize, labels: &[usize], of: &[usize]) -> Vec<usize> {
    let mut counts = vec![[0; FLOWS.len()]; models];
    labels.iter().zip(of).for_each(|(&k, &flow)| counts[k][flow] += 1);
    // The first of equals: `max_by_key` takes the last.
    counts.iter().map(|c| (0..FLOWS.len()).rev().max_by_key(|&f| c[f]).unwrap_or(0)).collect()
}

/// Each row's flow, as the model says that it mostly belongs to.
struct Read {
    flows: Vec<usize>,
    labels: Vec<usize>,
    /// Percent of the rows in models of mostly their own flow.
    share: f64,
}

impl Read {
    fn of(mixture: &Mixture, table: &Dataset, rows: &Labeled) -> Result<Self, Error> {
        let labels = mixture.labels(table)?;
        let flows = flows(mixture.models().len(), &labels, &rows.of);
        let share = rows.right(&labels.iter().map(|&k| flows[k]).collect::<Vec<_>>());
        Ok(Self { flows, labels, share })
    }

    fn flow(&self, row: usize) -> usize {
        self.flows[self.labels[row]]
    }
}

/// What one fit found.
struct Outcome {
    /// Percent of rows in models of mostly their own flow: of the rows fitted, of new ones, and of those
    /// fitted where a fifth of the cells is removed.
    shares: [f64; 3],
    /// −BIC/2 per row, in nats as the next: the log-density of rows of the validation table.
    bic: f64,
    held_out: f64,
}

struct Tables {
    train: Labeled,
    validation: Labeled,
    test: Labeled,
}

impl Tables {
    fn outcome(&self, n_mixtures: usize, seed: u64) -> Result<Outcome, Error> {
        let Self { train, validation, test } = self;
        let mixture = fitted(&train.rows, n_mixtures, seed)?;
        let read = Read::of(&mixture, &train.rows, train)?;
        let new: Vec<usize> = mixture.labels(&test.rows)?.iter().map(|&k| read.flows[k]).collect();
        let gappy = simulate::hide(&train.rows, SHARE, seed);
        let with_gaps = Read::of(&fitted(&gappy, n_mixtures, seed)?, &gappy, train)?;
        let (fit, n) = (mixture.log_likelihood(&train.rows)?, train.rows.n_rows());
        Ok(Outcome {
            shares: [read.share, test.right(&new), with_gaps.share],
            bic: -0.5 * information_criteria(fit, mixture.n_parameters(), n).bic / n as f64,
            held_out: mixture.score(&validation.rows)?,
        })
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = values.len() as f64;
    values.sum::<f64>() / n
}

fn make(run: &Run) -> Result<Findings, Error> {
    let table = |name: &str| Labeled::oil(run.data, &format!("oil_{name}.csv"));
    let tables = Tables { train: table("train")?, validation: table("validation")?, test: table("test")? };
    let starts = run.repeats(STARTS);
    let all = run.each("mixtures", MOST * starts, |k| {
        tables.outcome(1 + k / starts, run.seed + (k % starts) as u64)
    })?;
    let by_models: Vec<&[Outcome]> = all.chunks(starts).collect();
    let train = &tables.train;
    let (three, twelve) = (fitted(&train.rows, 3, run.seed)?, fitted(&train.rows, MODELS, run.seed)?);
    let (by_three, by_twelve) =
        (Read::of(&three, &train.rows, train)?, Read::of(&twelve, &train.rows, train)?);
    Ok(Findings {
        charts: vec![
            plane_chart(train, &by_three, &by_twelve)?,
            own_planes_chart(train, &twelve, &by_twelve)?,
            sizes_chart(&by_models),
        ],
        tables: vec![separation(&by_models), three_models(run, train, &three)?],
        notes: vec![
            size_note(&by_models),
            "A share is that of the rows whose model has mostly rows of their own flow; the flow of new rows is \
             the one that most training rows of their model have. Columns are not standardized. Data: Bishop & \
             James 1993, no license stated, so they are not shipped. The paper fitted 500 of these rows; it was \
             not at hand, so none of its numbers stand here."
                .to_owned(),
        ],
    })
}

/// Posterior means of the scores, thousandths: more digits are not seen.
fn places(model: &LinearGaussian, rows: &Dataset) -> Result<Vec<(f64, f64)>, Error> {
    let x = model.transform(rows, Coordinates::Posterior)?;
    let short = |v: f64| (1e3 * v).round() / 1e3;
    Ok((0..x.n_rows()).map(|i| (short(x[(i, 0)]), short(x[(i, 1)]))).collect())
}

/// Points by flow, and hollow ones over those that are `wrong`.
fn marks(places: &[(f64, f64)], flow: impl Fn(usize) -> usize, wrong: impl Fn(usize) -> bool) -> Vec<Series> {
    let of = |wanted: &dyn Fn(usize) -> bool| {
        (0..places.len()).filter(|&i| wanted(i)).map(|i| places[i]).collect::<Vec<_>>()
    };
    let by_flow = FLOWS.iter().enumerate();
    let mut series: Vec<Series> =
        by_flow.map(|(f, name)| Series::new(name, Look::Points, of(&|i| flow(i) == f)).color(f)).collect();
    series.push(Series::new(WRONG, Look::Hollow, of(&wrong)).color(3));
    series
}

const WRONG: &str = "in a model of mostly another flow";

fn plane_chart(train: &Labeled, three: &Read, twelve: &Read) -> Result<Chart, Error> {
    let ppca = Spectral::default().fit(&train.rows, &spec())?.model;
    let places = places(&ppca, &train.rows)?;
    let panel = |title: &str, series| {
        let (x, y) = (Axis::new("component 1"), Axis::new("component 2"));
        Panel::curves(title, Curves { x, y, series })
    };
    let told = |title: &str, read: &Read| {
        let title = format!("{title}: {} % with their own flow", fixed(read.share, 1));
        panel(&title, marks(&places, |i| train.of[i], |i| read.flow(i) != train.of[i]))
    };
    Ok(Chart {
        title: format!(
            "Twelve planes tell the three flows apart; three have {} % of the rows with their own",
            fixed(three.share, 0)
        ),
        subtitle: format!(
            "oil flow, {} rows of {} measurements, along two components of one PPCA; mixtures do not know the flows",
            train.rows.n_rows(),
            train.rows.n_columns()
        ),
        note:
            "Colors and marks: the flow, in all panels. Diamonds: rows that their model, by the flow of most \
               of its rows, would get wrong."
                .to_owned(),
        across: 3,
        panels: vec![
            panel("the flows", marks(&places, |i| train.of[i], |_| false)),
            told("3 models", three),
            told(&format!("{MODELS} models"), twelve),
        ],
    })
}

fn own_planes_chart(train: &Labeled, mixture: &Mixture, read: &Read) -> Result<Chart, Error> {
    let (mut panels, mut pure) = (Vec::new(), 0);
    for (k, model) in mixture.models().iter().enumerate() {
        let members: Vec<usize> = (0..read.labels.len()).filter(|&i| read.labels[i] == k).collect();
        if members.is_empty() {
            continue;
        }
        let places = places(model, &train.rows.of_rows(&members)?)?;
        let own = members.iter().filter(|&&i| train.of[i] == read.flows[k]).count();
        pure += usize::from(own as f64 >= 0.9 * members.len() as f64);
        let axis = || Axis::new("").between(-5.0, 5.0);
        let series = marks(&places, |m| train.of[members[m]], |m| train.of[members[m]] != read.flows[k]);
        panels.push(Panel::curves(
            &format!("{} of {} {}", own, members.len(), FLOWS[read.flows[k]]),
            Curves { x: axis(), y: axis(), series },
        ));
    }
    Ok(Chart {
        title: format!("In {pure} of {} models at least nine rows of ten have one flow", panels.len()),
        subtitle: format!(
            "oil flow, mixture of {MODELS} PPCAs with {COMPONENTS} components; each row in the plane of the model it mostly belongs to"
        ),
        note: "Axes: posterior means of the two scores of that model, in prior standard deviations."
            .to_owned(),
        across: 4,
        panels,
    })
}

fn sizes_chart(by_models: &[&[Outcome]]) -> Chart {
    let curve = |name: &str, color, value: &dyn Fn(&Outcome) -> f64| {
        let point = |(k, o): (usize, &&[Outcome])| (k as f64 + 1.0, mean(o.iter().map(value)));
        Series::new(name, Look::Joined, by_models.iter().enumerate().map(point).collect()).color(color)
    };
    let x = || Axis::new("models").between(0.0, MOST as f64 + 1.0);
    let shares = vec![
        curve("rows fitted", 0, &|o| o.shares[0]),
        curve("new rows", 1, &|o| o.shares[1]),
        curve("rows fitted, 20 % of the cells removed", 2, &|o| o.shares[2]),
    ];
    let nats = vec![
        curve("−BIC / 2 per row", 4, &|o| o.bic),
        curve("log-density of held-out rows", 5, &|o| o.held_out),
    ];
    Chart {
        title: "Three planes nearly tell the flows apart; held-out rows ask for many".to_owned(),
        subtitle: format!(
            "oil flow, {COMPONENTS} components each, means over {} starts; 1000 rows fitted, 1000 new, 1000 held out",
            by_models[0].len()
        ),
        note: String::new(),
        across: 2,
        panels: vec![
            Panel::curves(
                "rows in models of mostly their own flow",
                Curves { x: x(), y: Axis::new("%").between(30.0, 100.0), series: shares },
            ),
            Panel::curves("how many models?", Curves { x: x(), y: Axis::new("nats per row"), series: nats }),
        ],
    }
}

/// What is asked of the exhibit: that a mixture tells the flows apart.
fn separation(by_models: &[&[Outcome]]) -> Comparison {
    let rows = [3, 6, MODELS, MOST].into_iter().map(|models| {
        let starts = by_models[models - 1];
        let share = |k: usize| mean(starts.iter().map(|o| o.shares[k]));
        let least = starts.iter().map(|o| o.shares[0]).fold(f64::INFINITY, f64::min);
        let ours = format!(
            "{} % (least of {} starts {} %), new rows {} %, with gaps {} %",
            fixed(share(0), 1),
            starts.len(),
            fixed(least, 1),
            fixed(share(1), 1),
            fixed(share(2), 1)
        );
        let paper = format!("at least {APART} % of the rows fitted");
        Row::claim(&format!("{models} models"), &paper, &ours, share(0) >= APART)
            .why("models lie across flows where the search ended; see the table below")
    });
    let alone = mean(by_models[0].iter().map(|o| o.shares[0]));
    Comparison::with(
        "to be called apart",
        &format!("Rows in models of mostly their own flow; one model alone has {} %", fixed(alone, 1)),
        rows.collect(),
    )
}

/// The likeliest of many fits that start at rows drawn at random.
fn likeliest(run: &Run, train: &Dataset, n_mixtures: usize) -> Result<Mixture, Error> {
    let started = |k: usize| {
        let mut rng = ChaCha8Rng::seed_from_u64(run.seed + k as u64);
        let rows: Vec<usize> = (0..n_mixtures).map(|_| rng.random_range(0..train.n_rows())).collect();
        let centers = train.of_rows(&rows)?.values().clone();
        let method = MixtureEm { init: MixtureInit::Centers(Box::new(centers)), ..MixtureEm::of(n_mixtures) };
        let mixture = method.fit(train, &spec())?.model;
        Ok((mixture.score(train)?, mixture))
    };
    let all = run.each("random starts", run.repeats(RANDOM_STARTS), started)?;
    let best = all.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    Ok(best.expect("there is at least one start").1)
}

/// Whether three models could do, and whether they are found.
fn three_models(run: &Run, train: &Labeled, found: &Mixture) -> Result<Comparison, Error> {
    let names = FLOWS.map(str::to_owned);
    let told = ClassConditional::default().fit(&train.rows, &train.labels(), &names, &spec())?.model;
    let told = told.mixture().clone();
    let method = MixtureEm { init: MixtureInit::Given(Box::new(told.clone())), ..MixtureEm::of(FLOWS.len()) };
    let climbed = method.fit(&train.rows, &spec())?.model;
    let likeliest = likeliest(run, &train.rows, FLOWS.len())?;
    let nats = climbed.score(&train.rows)?;
    let row = |quantity: &str, mixture: &Mixture| -> Result<Row, Error> {
        let share = Read::of(mixture, &train.rows, train)?.share;
        let own = mixture.score(&train.rows)?;
        let words = format!("{} %, {} nats per row", fixed(share, 1), fixed(own, 2));
        let why = if own < nats - 0.01 {
            "a lower maximum of the likelihood than the one near the flows: the start, not the model, is at fault"
        } else {
            "flows are not quite ellipsoids: the likelihood rises as models take rows of other flows"
        };
        Ok(Row::claim(quantity, &format!("at least {APART} %"), &words, share >= APART).why(why))
    };
    let rows = vec![
        row("a model fitted to each flow", &told)?,
        row("EM from there on", &climbed)?,
        row("EM from twelve starts, as usual", found)?,
        row("EM from three starts by k-means", &from_k_means(&train.rows, FLOWS.len(), run.seed)?)?,
        row(&format!("EM from random rows, likeliest of {}", run.repeats(RANDOM_STARTS)), &likeliest)?,
    ];
    Ok(Comparison::with("to be called apart", "Three models: rows in models of mostly their own flow", rows))
}

/// What BIC and held-out rows choose.
fn size_note(by_models: &[&[Outcome]]) -> String {
    let best = |value: &dyn Fn(&Outcome) -> f64| {
        let means: Vec<f64> = by_models.iter().map(|o| mean(o.iter().map(value))).collect();
        (0..means.len()).max_by(|&a, &b| means[a].total_cmp(&means[b])).map_or(0, |k| k + 1)
    };
    format!(
        "Of 1 to {MOST} models BIC chooses {} and the log-density of held-out rows {}.",
        best(&|o| o.bic),
        best(&|o| o.held_out)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::shared;

    #[test]
    fn a_model_has_the_flow_of_most_of_its_rows_and_of_equals_the_first() {
        assert_eq!(flows(3, &[0, 0, 0, 1, 1], &[2, 2, 1, 1, 0]), [2, 0, 0]);
    }

    #[test]
    fn twelve_models_tell_flows_apart_and_three_nearly() {
        let Some(data) = shared(&["oil_flow"]) else { return };
        let train = Labeled::oil(&data, "oil_train.csv").unwrap();
        let share = |models, seed| {
            Read::of(&fitted(&train.rows, models, seed).unwrap(), &train.rows, &train).unwrap().share
        };
        assert!(share(MODELS, 0) > 97.0, "{}", share(MODELS, 0));
        for seed in 0..STARTS as u64 {
            assert!(share(3, seed) > 80.0, "seed {seed}: {}", share(3, seed));
        }
    }

    #[test]
    fn three_models_from_several_kinds_of_starts_are_likelier_than_from_k_means_and_nearer_to_the_flows() {
        let Some(data) = shared(&["oil_flow"]) else { return };
        let train = Labeled::oil(&data, "oil_train.csv").unwrap();
        let judged =
            |m: &Mixture| (m.score(&train.rows).unwrap(), Read::of(m, &train.rows, &train).unwrap().share);
        let k_means = judged(&from_k_means(&train.rows, 3, 0).unwrap());
        let usual = judged(&fitted(&train.rows, 3, 0).unwrap());
        assert!(usual.0 > k_means.0 + 2.0 && usual.1 > k_means.1 + 20.0, "{k_means:?} {usual:?}");
        let random = judged(&likeliest(&Run::new(&data), &train.rows, 3).unwrap());
        assert!(usual.0 > random.0 - 0.2, "{usual:?} {random:?}");
    }
}
