//! `--components auto`.

use crate::voice::count;
use covary::data::simulate;
use covary::infer::Observer;
use covary::{Dataset, Density, Error, Estimator, Method, Spec};
use std::fmt;

/// Most components tried.
const MOST: usize = 8;
/// Share of the observed cells hidden to judge by.
const HIDDEN: f64 = 0.1;

/// How many components, and on what grounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) n_components: usize,
    /// Largest number tried.
    pub(crate) most: usize,
    /// Cells hidden to judge by.
    pub(crate) hidden: usize,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n_components, most, hidden } = *self;
        match most {
            0 => write!(f, "no room for a component: gaps take the mean of their column"),
            1 => write!(f, "chose 1 component: there is no room for more"),
            _ => write!(
                f,
                "chose {}: the fewest of 1 to {most} that predict {} as well as the best",
                count(n_components, "component"),
                count(hidden, "hidden cell"),
            ),
        }?;
        match n_components {
            MOST => write!(f, "; more may do better, such as --components {}", MOST + MOST / 2),
            _ => Ok(()),
        }
    }
}

/// The fewest components that predict hidden cells as well as any number tried: a tenth of the
/// observed cells is hidden, 1, 2, … components are fitted to the rest, and each fit is judged by
/// the log-density of the hidden cells given the others of their row. The smallest number whose
/// mean over rows is within one standard error of the best one's is taken; the error is that of
/// the row-by-row difference, since all fits face the same cells.
pub(crate) fn n_components(
    data: &Dataset,
    spec: &Spec,
    method: &Method,
    seed: u64,
    observer: &mut dyn Observer,
) -> Result<Choice, Error> {
    let rest = simulate::hide(data, HIDDEN, seed);
    let hidden = data.n_observed() - rest.n_observed();
    let room = (data.n_columns() - 1).min(data.n_informative_rows().saturating_sub(2)).min(MOST);
    let judged: Vec<usize> = (0..data.n_rows())
        .filter(|&i| {
            data.row(i).iter().zip(rest.row(i)).any(|(whole, left)| left.is_nan() && !whole.is_nan())
        })
        .collect();
    let mut scores: Vec<Vec<f64>> = Vec::new();
    for q in 1..=room {
        let model = match method.fit_observed(&rest, &Spec { n_components: q, ..spec.clone() }, observer) {
            Ok(fit) => fit.model,
            Err(e) if q == 1 => return Err(e),
            Err(_) => break, // as many as the table has room for
        };
        // ln p(hidden | left) = ln p(hidden, left) − ln p(left), row by row.
        let (whole, left) = (model.log_density(data)?, model.log_density(&rest)?);
        scores.push(judged.iter().map(|&i| whole[i] - left[i]).collect());
    }
    // One column leaves no room for a component: its mean and variance are all there is.
    Ok(Choice { n_components: fewest_near_best(&scores).map_or(0, |k| k + 1), most: scores.len(), hidden })
}

/// Index of the first score whose mean is within one standard error of the best mean.
fn fewest_near_best(scores: &[Vec<f64>]) -> Option<usize> {
    let total = |s: &Vec<f64>| s.iter().sum::<f64>();
    let best = scores.iter().max_by(|a, b| total(a).total_cmp(&total(b)))?;
    let near = |score: &Vec<f64>| {
        let n = score.len() as f64;
        let mean = (total(best) - total(score)) / n;
        let squares: f64 = best.iter().zip(score).map(|(b, s)| (b - s - mean).powi(2)).sum();
        // Without judged rows nothing speaks against the smallest.
        score.len() < 2 || mean <= (squares / (n - 1.0) / n).sqrt()
    };
    scores.iter().position(near)
}

#[cfg(test)]
mod tests {
    use super::fewest_near_best;

    #[test]
    fn a_gain_within_its_own_error_is_no_gain() {
        let poor = vec![-2.0, -2.1, -1.9, -2.0];
        let good = vec![-1.0, -1.1, -0.9, -1.0];
        let hardly_better = vec![-0.7, -1.3, -0.6, -1.2];
        assert_eq!(fewest_near_best(&[poor, good, hardly_better]), Some(1));
        assert_eq!(fewest_near_best(&[vec![], vec![]]), Some(0));
        assert_eq!(fewest_near_best(&[]), None);
    }
}
