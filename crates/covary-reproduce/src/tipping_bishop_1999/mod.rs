//! Tipping & Bishop (1999): Probabilistic principal component analysis, J. R. Statist. Soc. B 61, 611–622.

pub(crate) mod fig_1;
pub(crate) mod table_1;

/// 38 viruses, counts of 18 amino acids (Ripley 1996).
const TABLE: &str = "tobamovirus/tobamovirus.csv";
