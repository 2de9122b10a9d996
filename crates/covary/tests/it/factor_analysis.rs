//! Factor analysis: what a doubting statistician would ask.
