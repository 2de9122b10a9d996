//! The state of the chains and their kept draws: all that a run needs to be continued, as bytes.

use super::table::Parameters;
use crate::checksum::Checksum;
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
    /// Of table, request and options except for the number of draws.
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

/// What the bytes begin with; the digit is the version of what follows. Version 1 had no checksum.
const MAGIC: &[u8; 16] = b"covary gibbs 2\r\n";
const MAGIC_1: &[u8; 16] = b"covary gibbs 1\r\n";

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
    /// f64 (W, μ, σ², α of the chain; then, per draw, the same and its log-likelihood); at the end the CRC-64
    /// of all bytes before it.
    ///
    /// # Errors
    /// Those of `to`.
    pub fn write(&self, to: impl Write) -> io::Result<()> {
        let (d, q) = self.shape();
        let mut to = Summed { to, checksum: Checksum::new() };
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
        let checksum = to.checksum.value();
        to.write_all(&checksum.to_le_bytes())?;
        to.flush()
    }

    /// Reads what [`write`](Self::write) wrote, to the end.
    ///
    /// # Errors
    /// Those of `from`, and [`io::ErrorKind::InvalidData`] if the bytes are not those of a state.
    pub fn read(mut from: impl Read) -> io::Result<Self> {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes)?;
        let begins = |magic: &[u8]| bytes.starts_with(magic);
        let end = match bytes.len().checked_sub(8) {
            _ if begins(MAGIC_1) => bytes.len(),
            Some(end) if begins(MAGIC) && end >= MAGIC.len() => {
                let mut checksum = Checksum::new();
                checksum.add(&bytes[..end]);
                if checksum.value().to_le_bytes() != bytes[end..] {
                    return Err(damaged(
                        "its bytes are not those of its checksum: some have changed or are missing",
                    ));
                }
                end
            }
            _ => return Err(damaged("it does not begin as one that this covary reads")),
        };
        let mut reader = Reader { rest: &bytes[MAGIC.len()..end] };
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

    /// Whether it has this many chains, all as long, of this table's columns and the components asked for.
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

/// Bytes on their way, and their checksum.
struct Summed<W> {
    to: W,
    checksum: Checksum,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.to.write(bytes)?;
        self.checksum.add(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
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
