//! Bishop (1999): Bayesian PCA, Advances in Neural Information Processing Systems 11, 382–388; and Variational
//! principal components, Proc. ICANN 1999, 509–514.

pub(crate) mod hinton;
