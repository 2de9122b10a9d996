use super::information_criteria;
use crate::infer::MixtureEm;
use crate::{Dataset, Density, Error, Spec};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use std::ops::ControlFlow;

/// A mixture of one size, judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MixtureSize {
    /// Models.
    pub n_mixtures: usize,
    /// Components of each.
    pub n_components: usize,
    /// Log-likelihood of the table, in nats.
    pub log_likelihood: f64,
    /// Free parameters.
    pub n_parameters: usize,
    /// `−2ℓ + p ln N`; smaller is better.
    pub bic: f64,
    /// Mean log-density of rows that a fit had not seen, in nats; larger is better. `None` where rows were
    /// not held out.
    pub held_out: Option<f64>,
}

/// BIC, and the log-density of held-out rows, over numbers of models and of components (spec §9.7).
///
/// `folds` parts of the rows are held out in turn; 0 leaves that out, which takes one fit for each size
/// instead of `folds` + 1. `watch` hears of fits done, of all, and may stop.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::MixtureEm, select::mixture_sizes, Spec};
/// use std::ops::ControlFlow;
/// let (table, _, _) = simulate::mixture(Shape { rows: 300, columns: 5, n_components: 1 }, 2, 20.0, /* seed */ 1);
/// let sizes = [(1, 1), (2, 1), (3, 1)];
/// let judged = mixture_sizes(&table, &Spec::ppca(1), &sizes, &MixtureEm::default(), 3, &|_, _| ControlFlow::Continue(()))?;
/// let best = judged.iter().max_by(|a, b| a.held_out.partial_cmp(&b.held_out).unwrap()).unwrap();
/// assert_eq!(best.n_mixtures, 2);
/// # Ok::<(), covary::Error>(())
/// ```
///
/// # Errors
/// [`Error::OutOfRange`] for one fold, [`Error::TooFewRows`] for more folds than rows,
/// [`Error::Interrupted`] if `watch` stopped, and as [`MixtureEm::fit`].
pub fn mixture_sizes(
    data: &Dataset,
    spec: &Spec,
    sizes: &[(usize, usize)],
    road: &MixtureEm,
    folds: usize,
    watch: &dyn Fn(usize, usize) -> ControlFlow<()>,
) -> Result<Vec<MixtureSize>, Error> {
    if folds == 1 {
        return Err(Error::OutOfRange { name: "folds", value: 1.0, bound: "0, or at least 2" });
    }
    if folds > data.n_rows() {
        return Err(Error::TooFewRows { rows: data.n_rows() });
    }
    let mut shuffled: Vec<usize> = (0..data.n_rows()).collect();
    shuffled.shuffle(&mut ChaCha8Rng::seed_from_u64(road.seed));
    let parts = |fold: usize| -> Result<(Dataset, Dataset), Error> {
        let (held, kept): (Vec<_>, Vec<_>) =
            shuffled.iter().enumerate().partition(|(place, _)| place % folds == fold);
        let rows = |of: Vec<(usize, &usize)>| {
            let mut rows: Vec<usize> = of.into_iter().map(|(_, &i)| i).collect();
            rows.sort_unstable();
            data.of_rows(&rows)
        };
        Ok((rows(kept)?, rows(held)?))
    };
    let (mut done, total) = (0, sizes.len() * (folds + 1));
    let mut tell = || {
        done += 1;
        if watch(done, total).is_break() { Err(Error::Interrupted) } else { Ok(()) }
    };
    let mut judge = |&(n_mixtures, n_components): &(usize, usize)| {
        let road = MixtureEm { n_mixtures, ..road.clone() };
        let spec = Spec { n_components, ..spec.clone() };
        let fit = road.fit(data, &spec)?;
        tell()?;
        let mut seen = 0.0;
        for fold in 0..folds {
            let (kept, held) = parts(fold)?;
            seen += road.fit(&kept, &spec)?.model.log_likelihood(&held)?;
            tell()?;
        }
        let (log_likelihood, n_parameters) = (fit.report.objective.value, fit.model.n_parameters());
        let rows = data.n_informative_rows();
        Ok(MixtureSize {
            n_mixtures,
            n_components,
            log_likelihood,
            n_parameters,
            bic: information_criteria(log_likelihood, n_parameters, rows).bic,
            held_out: (folds > 0).then(|| seen / rows as f64),
        })
    };
    sizes.iter().map(&mut judge).collect()
}
