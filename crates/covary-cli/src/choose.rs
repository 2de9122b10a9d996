//! `--components auto`.

use crate::voice::{Voice, count};
use covary::select::{ChoiceRule, HeldOut, HeldOutOptions, held_out_cells_up_to};
use covary::{Dataset, Error, Method, Spec};

/// Most components tried.
const MOST: usize = 8;

/// How many components, and on what grounds: none if the table has no room for any, or no cell to
/// spare to judge by.
pub(crate) struct Choice {
    pub(crate) n_components: usize,
    pub(crate) scores: Option<HeldOut>,
}

impl Choice {
    pub(crate) fn say(&self, voice: Voice) {
        let Some(scores) = &self.scores else {
            return voice.say(
                "no room for a component: gaps take the mean of their column (--components N fits anyway)",
            );
        };
        let most = scores.by_n_components.len() - 1;
        let more = match self.n_components {
            MOST => format!("; more may do better, such as --components {}", MOST + MOST / 2),
            _ => String::new(),
        };
        voice.say(&format!(
            "chose {}: the fewest of 0 to {most} that predict {} as well as the best{more}",
            count(self.n_components, "component"),
            count(scores.n_hidden, "hidden cell"),
        ));
    }
}

/// The library's choice by held-out cells, over as many components as the table has room for.
pub(crate) fn n_components(
    voice: Voice,
    data: &Dataset,
    spec: &Spec,
    method: &Method,
    seed: u64,
) -> Result<Choice, Error> {
    let rows = data.n_informative_rows();
    let most = MOST.min(spec.max_components(data.n_columns())).min(rows.saturating_sub(2));
    let options = HeldOutOptions { seed, ..HeldOutOptions::default() };
    let progress = voice.share("choosing the number of components");
    let watch = |done, total| progress.done(done, total);
    let scores = held_out_cells_up_to(data, spec, most, method, &options, &watch)?;
    let n_components = scores.as_ref().map_or(0, |scores| scores.chosen(ChoiceRule::OneStandardError));
    Ok(Choice { n_components, scores })
}
