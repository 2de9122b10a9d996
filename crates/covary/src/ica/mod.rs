//! Independent components: `t = A s + μ` with sources s that are independent and not Gaussian.
//!
//! | method | what it maximizes |
//! | --- | --- |
//! | [`FastIca`] | how far from Gaussian each source is, by a fixed-point iteration |
//! | [`MaximumLikelihood`] | the likelihood of sources with given densities, super- or sub-Gaussian |
//! | [`NoisyIca`] | a bound on the likelihood of Laplace sources behind noise, with gaps |
//!
//! What comes out of the first two is an [`Unmixing`], of the third a [`NoisyMixing`]; [`Method`] knows all three by name
//! and [`Fit`] holds what any of them found. None is a density of rows: sources have no Gaussian one.

mod contrast;
mod fast;
mod likelihood;
mod method;
mod noisy;
mod noisy_mixing;
mod unmixing;

pub use contrast::Contrast;
pub use fast::{Algorithm, FastIca, OwnContrast};
pub use likelihood::{Kind, MaximumLikelihood, Sources};
pub use method::{Fit, Method, Mixing};
pub use noisy::{NoisyIca, NoisySeparation, NoisyStart};
pub use noisy_mixing::NoisyMixing;
pub use unmixing::{Unmixing, amari_index};

use crate::error::count;
use crate::infer::{Kept, PrincipalAxes, Termination};
use crate::linalg::canonical_signs;
use crate::parallel::{add, over_pieces};
use crate::{Dataset, Error, Matrix, Spec};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Cells of whitened rows worked on at a time: four such blocks stay in the first caches.
const BLOCK_CELLS: usize = 8 * 1024;
/// Directions with a standard deviation below this share of the largest count as none, once columns are
/// standardized.
const LEAST_DEVIATION: f64 = 1e-10;
/// Columns are standardized by this share of their mean at least, so that rounding counts as no direction.
const LEAST_SHARE_OF_MEAN: f64 = 1e-5;
/// Below this excess kurtosis a source counts as Gaussian.
const GAUSSIAN: f64 = 0.1;

/// Separated sources and how they were found.
#[derive(Debug, Clone, PartialEq)]
pub struct Separation {
    /// From rows to sources and back.
    pub model: Unmixing,
    /// `E s⁴ − 3` of every source at unit variance: 0 for a Gaussian, above for heavy tails, below for
    /// light ones.
    pub kurtosis: Vec<f64>,
    /// Steps taken; of [`Algorithm::Deflation`], by the source that took most.
    pub n_iterations: usize,
    /// Why it ended.
    pub termination: Termination,
    /// What a likelihood says; `None` for [`FastIca`].
    pub likelihood: Option<Likelihood>,
    /// Warnings.
    pub warnings: Vec<Warning>,
}

/// What [`MaximumLikelihood`] says beyond the sources.
#[derive(Debug, Clone, PartialEq)]
pub struct Likelihood {
    /// Of the whitened table, in nats, after every step, the start first. Where [`Sources::Extended`]
    /// changed the kind of a source, values before and after do not compare.
    pub trace: Vec<f64>,
    /// The density of every source.
    pub kinds: Vec<Kind>,
    /// Root mean square of every source in the units of its density.
    pub scales: Vec<f64>,
}

impl Likelihood {
    /// Log-likelihood of the whitened table at the end, in nats.
    pub fn log_likelihood(&self) -> f64 {
        self.trace.last().copied().expect("the start is in the trace")
    }
}

/// Something to know about sources that were nevertheless returned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "code", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Warning {
    /// The limit on iterations came before the stopping rule was met.
    NotConverged {
        /// Iterations made.
        iterations: usize,
        /// How far the rule was from being met: what it watches, at the end.
        #[serde(with = "crate::json")]
        left: f64,
        /// What it asks for.
        #[serde(with = "crate::json")]
        tolerance: f64,
    },
    /// Two sources or more look Gaussian: any rotation of them is as good.
    Gaussian {
        /// These sources, counted from 1.
        sources: Vec<usize>,
    },
    /// These sources have lighter tails than a Gaussian, and only heavy ones are modeled: a rotation of them
    /// may fit better than they do.
    LightTails {
        /// These sources, counted from 1.
        sources: Vec<usize>,
    },
    /// Columns depend on others, and there are fewer sources than columns.
    Dependent {
        /// Directions left out.
        left_out: usize,
        /// Sources sought.
        sources: usize,
    },
    /// The noise of these columns reached its floor: sources explain them wholly, as far as they can be seen.
    NoiseAtFloor {
        /// These columns, by name.
        columns: Vec<String>,
    },
}

impl Warning {
    /// Its name for programs, as model files have it.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotConverged { .. } => "not_converged",
            Self::Gaussian { .. } => "gaussian",
            Self::LightTails { .. } => "light_tails",
            Self::Dependent { .. } => "dependent",
            Self::NoiseAtFloor { .. } => "noise_at_floor",
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConverged { iterations, left, tolerance } => write!(
                f,
                "still moving by {left:.1e} after {}, the tolerance is {tolerance:.0e}; raise the limit or the tolerance, or ask for fewer components",
                count(*iterations, "iteration")
            ),
            Self::LightTails { sources } => {
                let (what, have) = if sources.len() == 1 { ("source", "has") } else { ("sources", "have") };
                write!(
                    f,
                    "{what} {} {have} lighter tails than a Gaussian (excess kurtosis below -{GAUSSIAN}), and only heavy ones are modeled: a mixture of sources may fit better than they do; separate by maximum likelihood, which knows both kinds, gaps filled first",
                    listed(sources)
                )
            }
            Self::Gaussian { sources } => {
                let numbers = listed(sources);
                let (what, have) = if sources.len() == 1 { ("source", "has") } else { ("sources", "have") };
                write!(
                    f,
                    "{what} {numbers} {have} an excess kurtosis below {GAUSSIAN}: Gaussian sources cannot be told apart, and any rotation of them is as good; ask for fewer components"
                )
            }
            Self::Dependent { left_out, sources } => {
                let (what, were) = if *left_out == 1 { ("direction", "was") } else { ("directions", "were") };
                write!(
                    f,
                    "columns depend on others: {left_out} {what} with next to no variance {were} left out, number of sources sought: {sources}; drop columns that others determine, or ask for {}",
                    count(*sources, "component")
                )
            }
            Self::NoiseAtFloor { columns } => write!(
                f,
                "the noise of {} reached its floor: the sources explain these columns wholly, and one source may stand for one column alone; ask for fewer components or for one noise variance (tied_noise)",
                columns.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(", ")
            ),
        }
    }
}

fn listed(sources: &[usize]) -> String {
    sources.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// A whitened table: `Z = (T − t̄) K`, `Zᵀ Z / N = I` [M 2.8.1].
struct Whitened {
    mean: Vec<f64>,
    /// Kᵀ, q × d.
    whitening: Matrix,
    /// Its pseudo-inverse, d × q.
    dewhitening: Matrix,
    /// n × q.
    rows: Matrix,
    /// Whether the rows were made white here.
    scaled: bool,
    /// Directions that rows and varying columns leave room for and the table lacks.
    left_out: usize,
}

impl Whitened {
    /// Centered and whitened along its `n_components` leading axes, or all it has.
    fn new(data: &Dataset, n_components: Option<usize>, method: &'static str) -> Result<Self, Error> {
        refuse_gaps(data, method)?;
        let n = data.n_rows();
        if let Some(asked @ 0) = n_components {
            let bound = "1 or more";
            return Err(Error::OutOfRange { name: "n_components", value: asked as f64, bound });
        }
        if n < 2 {
            return Err(Error::TooFewRows { rows: n });
        }
        let names = data.column_names();
        Spec { standardize: true, ..Spec::ppca(1) }.check_variances(
            data.observed_variances(),
            names,
            Some(data),
        )?;
        let varying = (0..data.n_columns()).filter(|&j| !data.is_constant(j)).count();
        let wanted = n_components.unwrap_or(varying.min(n - 1));
        let mut white = Self::along_axes(data, n_components, &vec![unit(data); data.n_columns()])?;
        if white.n_components() < wanted {
            // Columns of very different units, or dependent ones: their correlations tell which.
            let own: Vec<f64> = data
                .observed_variances()
                .iter()
                .zip(data.observed_means())
                .map(|(variance, mean)| power_of_two(variance.sqrt().max(LEAST_SHARE_OF_MEAN * mean.abs())))
                .collect();
            let standardized = Self::along_axes(data, n_components, &own)?;
            if standardized.n_components() > white.n_components() {
                white = standardized;
            }
        }
        let rank = white.n_components();
        match n_components {
            _ if rank == 0 => return Err(Error::AllConstant { columns: data.n_columns() }),
            Some(asked) if rank < asked => return Err(Error::RankBelow { asked, rank }),
            _ => {}
        }
        white.left_out = wanted.saturating_sub(rank);
        Ok(white)
    }

    /// Along the leading axes, at most `n_components`, of the table with every column over its unit.
    fn along_axes(data: &Dataset, n_components: Option<usize>, units: &[f64]) -> Result<Self, Error> {
        let (n, d) = (data.n_rows(), data.n_columns());
        let data = over(data, units)?;
        let kept = n_components.map_or(Kept::All, Kept::Number);
        let mut axes = PrincipalAxes { kept, ..PrincipalAxes::default() }.fit(&data)?;
        let sd: Vec<f64> = axes.singular_values().iter().map(|s| s / (n as f64).sqrt()).collect();
        let rank = sd.iter().take_while(|s| **s > LEAST_DEVIATION * sd[0]).count();
        axes.components = Matrix::from_fn(rank, d, |i, j| axes.components[(i, j)]);
        axes.explained_variance.truncate(rank);
        // The sign that scikit-learn gives an axis, so that a start means the same here.
        for i in 0..rank {
            if axes.components[(i, 0)] < 0.0 {
                axes.components.row_mut(i).iter_mut().for_each(|v| *v = -*v);
            }
        }
        let mut rows = axes.transform(&data, true)?;
        // Whitened there by the divisor N − 1.
        let correction = (n as f64 / (n as f64 - 1.0)).sqrt();
        rows.as_mut_slice().iter_mut().for_each(|z| *z *= correction);
        let dewhitening = Matrix::from_fn(d, rank, |j, i| axes.components[(i, j)] * sd[i] * units[j]);
        let whitening = Matrix::from_fn(rank, d, |i, j| axes.components[(i, j)] / sd[i] / units[j]);
        let mean = axes.mean.iter().zip(units).map(|(m, unit)| m * unit).collect();
        Ok(Self { mean, whitening, dewhitening, rows, scaled: true, left_out: 0 })
    }

    /// The table as it is.
    fn as_given(data: &Dataset, method: &'static str) -> Result<Self, Error> {
        refuse_gaps(data, method)?;
        let d = data.n_columns();
        Ok(Self {
            mean: vec![0.0; d],
            whitening: Matrix::identity(d),
            dewhitening: Matrix::identity(d),
            rows: data.values().clone(),
            scaled: false,
            left_out: 0,
        })
    }

    fn n_components(&self) -> usize {
        self.whitening.n_rows()
    }

    fn dependent(&self) -> Option<Warning> {
        let (left_out, sources) = (self.left_out, self.n_components());
        (left_out > 0).then_some(Warning::Dependent { left_out, sources })
    }

    /// The sources `y = B z`, at unit variance, by decreasing explained variance `‖aᵢ‖²`, the entry of
    /// largest absolute value of every aᵢ positive. Also which row of B each of them is, and its root
    /// mean square there.
    fn unmixing(&self, b: &Matrix) -> (Unmixing, Vec<usize>, Vec<f64>) {
        let q = self.n_components();
        let powers = self.powers(b);
        let n = self.rows.n_rows() as f64;
        let rms: Vec<f64> = (0..q).map(|i| (powers[i] / n).sqrt()).collect();
        let scale: Vec<f64> =
            rms.iter().map(|r| if self.scaled && *r > 0.0 { 1.0 / r } else { 1.0 }).collect();
        let mut rotation = b.clone();
        rotation.scale_rows(&scale);
        let mixing = self.dewhitening.dot(&crate::linalg::inverse(&rotation));
        let length = |i: usize| (0..mixing.n_rows()).map(|j| mixing[(j, i)] * mixing[(j, i)]).sum::<f64>();
        let lengths: Vec<f64> = (0..q).map(length).collect();
        let mut order: Vec<usize> = (0..q).collect();
        order.sort_by(|&a, &b| lengths[b].total_cmp(&lengths[a]));
        let mut mixing = Matrix::from_fn(mixing.n_rows(), q, |j, i| mixing[(j, order[i])]);
        let flips = canonical_signs(&mut mixing);
        let rotation = Matrix::from_fn(q, q, |i, k| flips[i] * rotation[(order[i], k)]);
        let model = Unmixing::new(self.mean.clone(), self.whitening.clone(), rotation, mixing)
            .expect("parts made for each other");
        (model, order.clone(), order.iter().map(|&i| rms[i]).collect())
    }

    /// `Σ yᵢ²`, then `Σ yᵢ⁴`, of `y = B z`.
    fn powers(&self, b: &Matrix) -> Vec<f64> {
        let q = self.n_components();
        self.sum(b, 2 * q, |y, _, sums| {
            for row in y.chunks_exact(q) {
                for (i, y) in row.iter().enumerate() {
                    sums[i] += y * y;
                    sums[q + i] += y * y * y * y;
                }
            }
        })
    }

    /// Adds up what `work` makes of blocks of `Y = Z Bᵀ` and Z, in a fixed tree.
    fn sum(&self, b: &Matrix, length: usize, work: impl Fn(&[f64], &[f64], &mut [f64]) + Sync) -> Vec<f64> {
        let (n, q, p) = (self.rows.n_rows(), self.n_components(), b.n_rows());
        let step = BLOCK_CELLS.div_ceil(q);
        let part_of = |range: std::ops::Range<usize>| {
            let (mut sums, mut y) = (vec![0.0; length], vec![0.0; step * p]);
            for z in self.rows.as_slice()[range.start * q..range.end * q].chunks(step * q) {
                let m = z.len() / q;
                let y = &mut y[..m * p];
                let out = faer::MatMut::from_row_major_slice_mut(y, m, p);
                let left = faer::MatRef::from_row_major_slice(z, m, q);
                crate::linalg::gemm(out, false, left, b.view().transpose());
                work(y, z, &mut sums);
            }
            sums
        };
        over_pieces(n, step, part_of, |a, b| add(a, b))
    }

    /// Excess kurtosis of every source.
    fn kurtosis(&self, model: &Unmixing) -> Vec<f64> {
        let (n, q) = (self.rows.n_rows() as f64, self.n_components());
        let powers = self.powers(&model.rotation);
        (0..q).map(|i| n * powers[q + i] / (powers[i] * powers[i]) - 3.0).collect()
    }
}

/// How many sources FastICA finds room for, gaps filled by this many components.
pub(crate) fn n_directions(data: &Dataset, n_components: usize) -> Result<usize, Error> {
    Ok(Whitened::new(&*noisy::whole(data, n_components)?, None, "FastICA")?.n_components())
}

/// The unit in which the column that varies most has a standard deviation about 1.
fn unit(data: &Dataset) -> f64 {
    power_of_two(data.observed_variances().iter().fold(0.0, |m: f64, v| v.max(m)).sqrt())
}

/// The nearest, so that dividing by it rounds nothing; 1 for 0.
fn power_of_two(sd: f64) -> f64 {
    if sd > 0.0 { sd.log2().round().exp2() } else { 1.0 }
}

/// The table, every column over its unit.
fn over(data: &Dataset, units: &[f64]) -> Result<Dataset, Error> {
    let mut values = data.values().clone();
    values.scale_columns(&units.iter().map(|unit| 1.0 / unit).collect::<Vec<_>>());
    Dataset::with_names(values, data.column_names().to_vec())
}

fn refuse_gaps(data: &Dataset, method: &'static str) -> Result<(), Error> {
    match data.n_gaps() {
        0 => Ok(()),
        gaps => Err(Error::GapsInSources { method, gaps }),
    }
}

/// Whether a source of this excess kurtosis cannot be distinguished from a Gaussian one.
pub fn looks_gaussian(kurtosis: f64) -> bool {
    kurtosis.abs() < GAUSSIAN
}

/// The warning of Gaussian sources, where it is due [M 2.8.3].
fn gaussian(kurtosis: &[f64]) -> Option<Warning> {
    let sources: Vec<usize> =
        kurtosis.iter().enumerate().filter(|(_, k)| looks_gaussian(**k)).map(|(i, _)| i + 1).collect();
    (sources.len() > 1).then_some(Warning::Gaussian { sources })
}
