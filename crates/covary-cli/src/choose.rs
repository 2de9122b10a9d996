//! `--components auto`.

use crate::console::{Console, count};
use crate::views;
use covary::learn::{Choice, MOST_TRIED, Request};
use covary::{Dataset, Error, Method};

/// The number of components, said aloud where it was chosen.
pub(crate) fn n_components(
    console: Console,
    request: &Request,
    data: &Dataset,
    method: &Method,
) -> Result<Choice, Error> {
    let progress = console.share("choosing the number of components");
    let choice = request.choose(data, method, &|done, total| progress.done(done, total))?;
    drop(progress);
    views::tell_choice(console, &choice);
    match &choice.scores {
        None if request.searches(method) => console
            .say("no room for a component: gaps take the mean of their column (--components N fits anyway)"),
        None => {}
        Some(scores) => {
            let more = match choice.n_components {
                MOST_TRIED => {
                    format!("; more may do better, such as --components {}", MOST_TRIED + MOST_TRIED / 2)
                }
                0 => "; gaps take the mean of their column (--components 1 fits anyway)".to_owned(),
                _ => String::new(),
            };
            console.say(&format!(
                "chose {}: the fewest of 0 to {} that predict {} as well as the best{more}",
                count(choice.n_components, "component"),
                scores.by_n_components.len() - 1,
                count(scores.n_hidden, "hidden cell"),
            ));
        }
    }
    Ok(choice)
}
