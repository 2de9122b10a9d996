//! Figure 14 once more, nearer to the paper's task: the four real masks take turns over all months, so that none
//! is complete, and PCA, probabilistic PCA and Bayesian PCA fill the table as the plain command does: `covary impute
//! --standardize=false --model …`, no weights, no floor, no recipe.

use super::sea::{Errors, FIRST_YEAR, N_MONTHS, NEEDS, Sea, VALIDATION};
use super::sea_steps::{COMPONENTS, Values, routine_error};
use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::family::{Components, Family, MOST_OFFERED, Request};
use covary::learned::Rows;
use covary_report::chart::{Axis, Chart, Curves, Look, Panel, Series, fixed};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "chen-2018-fig-14-all-months",
    source: "Chen, Du & Vuyyuru 2018, figure 14, gaps in every month",
    title: "Sea-surface temperature behind masks that take turns: PCA, PPCA and Bayesian PCA against climatology",
    needs: NEEDS,
    make,
};

/// A quick look takes one cell in this many.
const QUICK: usize = 6;

/// A way to fill the table.
struct Way {
    name: &'static str,
    family: Family,
    /// Components; as many as the command offers if none.
    n_components: Option<usize>,
}

const WAYS: [Way; 5] = [
    Way { name: "PCA", family: Family::Pca, n_components: Some(COMPONENTS) },
    Way { name: "PPCA", family: Family::Ppca, n_components: Some(COMPONENTS) },
    Way { name: "Bayesian PCA", family: Family::Bpca, n_components: None },
    Way { name: "PPCA", family: Family::Ppca, n_components: Some(MOST_OFFERED) },
    Way { name: "PPCA", family: Family::Ppca, n_components: Some(5) },
];
const PCA: usize = 0;
const PPCA: usize = 1;
const BAYES: usize = 2;
const AS_MANY: usize = 3;

/// What a way made of the hidden cells of 1982–1991.
struct Filled {
    n_components: usize,
    all: Errors,
    months: Vec<Errors>,
}

impl Filled {
    fn below(&self) -> usize {
        self.months.iter().filter(|m| m.rmse < m.climatology).count()
    }
}

fn make(run: &Run) -> Result<Findings, Error> {
    let sea = Sea::read(run.data)?.unweighted();
    let step = if run.most_repeats.is_some() { QUICK } else { 1 };
    let seen_by_some = |j: usize| sea.hidden.iter().any(|h| !h[j]);
    let cells: Vec<usize> = (0..sea.n_cells()).filter(|&j| seen_by_some(j)).step_by(step).collect();
    let sea = sea.of_cells(&cells);
    let mut rng = ChaCha8Rng::seed_from_u64(run.seed);
    let turns: Vec<usize> = (0..N_MONTHS).map(|_| rng.random_range(0..sea.hidden.len())).collect();
    let hides = |i: usize, j: usize| sea.hidden[turns[i]][j];
    let table = sea.table(0..N_MONTHS, hides)?;

    let fill = |way: usize| -> Result<Filled, Error> {
        let Way { family, n_components, .. } = WAYS[way];
        let request = Request {
            n_components: n_components.map(Components::Number),
            standardize: Some(false),
            ..Request::new(family)
        };
        let learned = request.learn(&table)?;
        let filled = learned.fill(Rows::Training)?.fill(&table)?;
        let in_years = || filled.cells().iter().filter(|c| VALIDATION.contains(&c.row));
        let month = |i: usize| Errors::of(&sea, in_years().filter(|c| c.row == i));
        let months = VALIDATION.map(month).collect::<Result<_, _>>()?;
        Ok(Filled { n_components: learned.n_components(), all: Errors::of(&sea, in_years())?, months })
    };
    let filled = run.each("ways to fill", WAYS.len(), fill)?;
    let routine = run.each("the paper's routine", 2, |k| {
        routine_error(&sea, [Values::Temperatures, Values::Anomalies][k], hides)
    })?;
    let climatology = filled[0].all.climatology;
    let share = 100.0 * table.n_gaps() as f64 / (N_MONTHS * sea.n_cells()) as f64;
    Ok(Findings {
        charts: vec![chart(&filled, &sea, share)],
        tables: vec![paper_table(&filled), ways_table(&filled, &routine, climatology)],
        notes: vec![format!(
            "{} cells that some mask shows, {} % of the values missing, no month complete. COBE-SST2 stands for the paper's data and is smoother than they are.",
            sea.n_cells(),
            fixed(share, 1)
        )],
    })
}

fn paper_table(filled: &[Filled]) -> Comparison {
    let of = |way: usize| {
        let Filled { all, months, .. } = &filled[way];
        let ratios = months.iter().map(|m| m.rmse / m.climatology);
        let (low, high) = ratios.fold((f64::INFINITY, 0.0_f64), |(l, h), r| (l.min(r), h.max(r)));
        format!(
            "{} °C against {}; {} to {} times climatology's, below it in {} of {} months",
            fixed(all.rmse, 3),
            fixed(all.climatology, 3),
            fixed(low, 2),
            fixed(high, 2),
            filled[way].below(),
            months.len()
        )
    };
    let why = "the paper fills temperatures, not anomalies, and begins at the month's spatial mean; the table below has its routine of either";
    let worse = |way: usize| filled[way].all.rmse > filled[way].all.climatology;
    let apart = (filled[PCA].all.rmse - filled[PPCA].all.rmse).abs();
    let rows = vec![
        Row::claim("PCA against climatology", "worse", &of(PCA), worse(PCA)).why(why),
        Row::claim("PPCA against climatology", "worse", &of(PPCA), worse(PPCA)).why(why),
        Row::claim("Bayesian PCA against climatology", "worse", &of(BAYES), worse(BAYES)).why(why),
        Row::claim(
            "PCA and PPCA share their error",
            "the same",
            &format!("{} °C apart", fixed(apart, 4)),
            apart < 5e-5,
        )
        .why("gaps are integrated out in both; PCA's scores are not shrunk"),
        Row::claim(
            "Bayesian PCA against PPCA",
            "worse",
            &format!(
                "{} °C with {} components, PPCA {} with {}",
                fixed(filled[BAYES].all.rmse, 3),
                filled[BAYES].n_components,
                fixed(filled[PPCA].all.rmse, 3),
                filled[PPCA].n_components
            ),
            filled[BAYES].all.rmse > filled[PPCA].all.rmse,
        )
        .why(&format!(
            "the paper's made five sweeps; converged, it shrinks what few cells support: PPCA with {} components has {} °C",
            filled[AS_MANY].n_components,
            fixed(filled[AS_MANY].all.rmse, 3)
        )),
    ];
    Comparison::with_paper("Months 1982–1991, gaps in every month", rows)
}

fn ways_table(filled: &[Filled], routine: &[f64], climatology: f64) -> Comparison {
    let row = |name: &str, error: f64, why: &str| {
        let digits = if error < 10.0 { 3 } else { 1 };
        Row::claim(name, &fixed(climatology, 3), &fixed(error, digits), error < climatology).why(why)
    };
    let mut rows = vec![
        row(
            "the paper's routine, temperatures, PCA of 20 components",
            routine[0],
            "gaps begin at the month's spatial mean, and ten rounds hardly move them",
        ),
        row("the paper's routine, anomalies", routine[1], "the routine treats what it filled in as observed"),
    ];
    rows.extend(WAYS.iter().zip(filled).map(|(way, filled)| {
        row(
            &format!("{}, {} components", way.name, filled.n_components),
            filled.all.rmse,
            "too few columns of what was seen tell of the hidden ones",
        )
    }));
    Comparison::with(
        "climatology, to be below it",
        "Root mean squared errors of hidden cells 1982–1991, °C",
        rows,
    )
}

fn chart(filled: &[Filled], sea: &Sea, share: f64) -> Chart {
    let year = |k: usize| FIRST_YEAR as f64 + ((VALIDATION.start + k) as f64 + 0.5) / 12.0;
    let curve = |way: usize, of: fn(&Errors) -> f64| {
        filled[way].months.iter().enumerate().map(|(k, m)| (year(k), of(m))).collect::<Vec<_>>()
    };
    let series = vec![
        Series::new("climatology", Look::Line, curve(PCA, |m| m.climatology)).color(6),
        Series::new("PCA = PPCA", Look::Line, curve(PPCA, |m| m.rmse)).color(1),
        Series::new("Bayesian PCA", Look::Line, curve(BAYES, |m| m.rmse)),
    ];
    let (below, n) = (filled[BAYES].below(), VALIDATION.len());
    Chart {
        title: format!("Bayesian PCA is better than climatology in {below} of {n} months"),
        subtitle: format!(
            "COBE-SST2, {} cells of 5°, {} % of the values of 1951–1991 missing, no month complete",
            sea.n_cells(),
            fixed(share, 0)
        ),
        note: format!(
            "Root mean squared errors of the hidden cells of each month. PCA and PPCA have {COMPONENTS} components, as the paper's; Bayesian PCA was offered {}.",
            filled[BAYES].n_components
        ),
        across: 1,
        panels: vec![Panel::curves(
            "",
            Curves {
                x: Axis::new("").between(1982.0, 1992.0),
                y: Axis::new("root mean squared error, °C").between(0.0, 1.0),
                series,
            },
        )],
    }
}
