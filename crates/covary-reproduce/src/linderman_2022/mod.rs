//! Linderman (2022): Linear Gaussian latent variable models, lecture 5 of STATS 305C, Stanford. Slides.

pub(crate) mod scree;
