//! Where the chains stand and what they have kept: all that a run needs to go on, as bytes.

use super::table::Parameters;
use crate::{Dataset, Matrix, Spec};
use std::io::{self, Read, Write};

/// Where the chains of a [`Gibbs`](super::Gibbs) run stand: the parameters of each, the sweeps made
/// and the draws kept.
///
/// Every sweep has a random stream of its own, named by its chain and number. A run that goes on from
/// a state is therefore, bit for bit, the run that was never stopped.
///
/// ```
/// use covary::{data::{simulate, Shape}, infer::{Gibbs, GibbsState, Step}, Spec};
/// use std::ops::ControlFlow;
/// let (table, _) = simulate::ppca(Shape { rows: 30, columns: 4, n_components: 1 }, /* seed */ 1);
/// let (gibbs, spec) = (Gibbs { draws: 50, warm_up: 50, ..Gibbs::default() }, Spec::ppca(1));
///
/// let mut state = gibbs.begin(&table, &spec)?;
/// let mut once = |_: &Step| ControlFlow::Break(());
/// gibbs.resume(&mut state, &table, &spec, &mut once)?;                  // stopped at the first chance …
/// let mut bytes = Vec::new();
/// state.write(&mut bytes).unwrap();                                     // … kept …
/// let mut state = GibbsState::read(bytes.as_slice()).unwrap();
/// let fit = gibbs.resume(&mut state, &table, &spec, &mut ())?;          // … and finished
/// assert_eq!(fit.draws, covary::Estimator::fit(&gibbs, &table, &spec)?.draws);
/// # Ok::<(), covary::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct GibbsState {
    /// Of table, request and options but for the number of draws.
    pub(super) fingerprint: u64,
    /// Made by each chain.
    pub(super) sweeps: usize,
    pub(super) chains: Vec<Chain>,
}

/// One chain.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chain {
    pub(super) at: Parameters,
    pub(super) draws: Vec<Draw>,
}

/// Parameters kept, in the table's units, and their log-likelihood in the user's.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Draw {
    pub(super) parameters: Parameters,
    pub(super) log_likelihood: f64,
}

/// What the bytes begin with; the digit is the version of what follows.
const MAGIC: &[u8; 16] = b"covary gibbs 1\r\n";

impl GibbsState {
    /// Sweeps made by each chain.
    pub fn n_sweeps(&self) -> usize {
        self.sweeps
    }

    /// Draws kept, over all chains.
    pub fn n_draws(&self) -> usize {
        self.chains.iter().map(|chain| chain.draws.len()).sum()
    }

    /// Writes the state: after 16 bytes that name the format, little-endian u64 (the fingerprint of
    /// table and request, sweeps, columns, components, chains, then per chain its number of draws) and
    /// f64 (W, μ, σ², α of the chain; then, per draw, the same and its log-likelihood).
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write(&self, mut to: impl Write) -> io::Result<()> {
        let (d, q) = self.shape();
        to.write_all(MAGIC)?;
        to.write_all(&self.fingerprint.to_le_bytes())?;
        for count in [self.sweeps, d, q, self.chains.len()] {
            to.write_all(&(count as u64).to_le_bytes())?;
        }
        for Chain { at, draws } in &self.chains {
            to.write_all(&(draws.len() as u64).to_le_bytes())?;
            write_parameters(at, &mut to)?;
            for draw in draws {
                write_parameters(&draw.parameters, &mut to)?;
                to.write_all(&draw.log_likelihood.to_le_bytes())?;
            }
        }
        Ok(())
    }

    /// Reads what [`write`](Self::write) wrote, to the end.
    ///
    /// # Errors
    /// Those of `from`, and [`io::ErrorKind::InvalidData`] if the bytes are not those of a state.
    pub fn read(mut from: impl Read) -> io::Result<Self> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)?;
        let rest =
            bytes.strip_prefix(MAGIC).ok_or_else(|| damaged("it does not begin as one of this version"))?;
        let mut reader = Reader { rest };
        let fingerprint = reader.word()?;
        let [sweeps, d, q, n_chains] = [reader.count()?, reader.count()?, reader.count()?, reader.count()?];
        // Every number is there before room is made for it.
        let numbers = d.checked_mul(q).and_then(|w| w.checked_add(2 * d + q)).ok_or_else(too_short)?;
        let mut chains = Vec::new();
        for _ in 0..n_chains {
            let n_draws = reader.count()?;
            let at = reader.parameters(d, q, numbers)?;
            let mut draws = Vec::new();
            for _ in 0..n_draws {
                let parameters = reader.parameters(d, q, numbers)?;
                draws.push(Draw { parameters, log_likelihood: f64::from_bits(reader.word()?) });
            }
            chains.push(Chain { at, draws });
        }
        if !reader.rest.is_empty() || chains.is_empty() {
            return Err(damaged("its length is not that of its draws"));
        }
        Ok(Self { fingerprint, sweeps, chains })
    }

    /// Whether it has so many chains, all as long, of this table's columns and the components asked for.
    pub(super) fn fits(&self, chains: usize, data: &Dataset, spec: &Spec) -> bool {
        let shape = (data.n_columns(), spec.n_components);
        let length = self.chains.first().map_or(0, |chain| chain.draws.len());
        let alike = |chain: &Chain| {
            let all = chain.draws.iter().map(|draw| &draw.parameters).chain([&chain.at]);
            chain.draws.len() == length && all.into_iter().all(|p| (p.w.n_rows(), p.w.n_columns()) == shape)
        };
        self.chains.len() == chains && self.chains.iter().all(alike)
    }

    /// Columns and components.
    fn shape(&self) -> (usize, usize) {
        self.chains.first().map_or((0, 0), |chain| (chain.at.w.n_rows(), chain.at.w.n_columns()))
    }
}

fn write_parameters(p: &Parameters, to: &mut impl Write) -> io::Result<()> {
    let numbers = p.w.as_slice().iter().chain(&p.mean).chain(&p.noise).chain(&p.alpha);
    to.write_all(&numbers.flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>())
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not the state of a sampler: {why}"))
}

fn too_short() -> io::Error {
    damaged("it ends too early")
}

/// Bytes still to be read.
struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn word(&mut self) -> io::Result<u64> {
        let (word, rest) = self.rest.split_first_chunk().ok_or_else(too_short)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*word))
    }

    fn count(&mut self) -> io::Result<usize> {
        // No count, not even of numbers, exceeds that of addresses.
        usize::try_from(self.word()?).ok().filter(|n| *n <= usize::MAX / 16).ok_or_else(too_short)
    }

    fn parameters(&mut self, d: usize, q: usize, numbers: usize) -> io::Result<Parameters> {
        let length = numbers.checked_mul(8).ok_or_else(too_short)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or_else(too_short)?;
        self.rest = rest;
        let word = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().expect("chunks of eight"));
        let mut numbers = bytes.chunks_exact(8).map(word);
        let mut take = |n: usize| numbers.by_ref().take(n).collect::<Vec<f64>>();
        let w = Matrix::from_vec(d, q, take(d * q)).map_err(|_| too_short())?;
        let p = Parameters { w, mean: take(d), noise: take(d), alpha: take(q) };
        let finite = p.w.as_slice().iter().chain(&p.mean).all(|v| v.is_finite());
        let positive = p.noise.iter().chain(&p.alpha).all(|v| v.is_finite() && *v > 0.0);
        if finite && positive { Ok(p) } else { Err(damaged("a parameter is out of its range")) }
    }
}
