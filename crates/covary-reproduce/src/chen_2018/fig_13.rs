//! Figure 13: one month of sea-surface temperature, hidden cells recovered.

use super::sea::{Errors, FIRST_YEAR, MASKS, NEEDS, Sea, Spectra, WHY, recover};
use crate::{Comparison, Error, Exhibit, Findings, Row, Run};
use covary::model::FilledCell;
use covary_report::chart::{Chart, Panel, fixed};
use covary_report::plot::map;

pub(crate) const EXHIBIT: Exhibit = Exhibit {
    name: "chen-2018-fig-13",
    source: "Chen, Du & Vuyyuru 2018, figure 13",
    title: "Sea-surface temperature of one month, recovered",
    needs: NEEDS,
    make,
};

/// The mask of MOHSST5 in October 1991, and that month.
const MASK: usize = 0;
const MONTH: usize = 12 * (1991 - FIRST_YEAR) + 9;
/// South of here the paper's maps have "obvious errors".
const SOUTH: f64 = -60.0;

fn make(run: &Run) -> Result<Findings, Error> {
    let sea = Sea::read(run.data)?;
    let recovered = recover(run, &sea, &Spectra::new(&sea)?, MASK)?;
    let mut hidden: Vec<Option<&FilledCell>> = vec![None; sea.n_cells()];
    for cell in recovered.cells.iter().filter(|c| c.row == MONTH) {
        hidden[cell.column] = Some(cell);
    }
    let month = Errors::of(&sea, hidden.iter().copied().flatten())?;
    let south = || hidden.iter().copied().flatten().filter(|c| sea.latitude[c.column] < SOUTH);
    let truth = |j: usize| sea.anomalies[(MONTH, j)];
    let worst = south().map(|c| (c.mean - truth(c.column)).abs()).fold(0.0, f64::max);
    let southern = Errors::of(&sea, south())?;

    let seen = |j: usize| hidden[j].map_or(truth(j), |c| c.mean);
    let largest = (0..sea.n_cells()).flat_map(|j| [truth(j).abs(), seen(j).abs()]).fold(0.0, f64::max);
    let panel =
        |title: &str, full: Option<f64>, value: &dyn Fn(usize) -> Option<f64>| -> Result<Panel, Error> {
            Ok(Panel::map(title, map::numbers("", title, &sea.map(value))?, full))
        };
    let chart = Chart {
        title: format!("October 1991: {} of {} cells hidden and recovered", month.n, sea.n_cells()),
        subtitle: "Sea-surface temperature of COBE-SST2 behind the map of MOHSST5, °C against 1951–1980"
            .to_owned(),
        note: format!(
            "Probabilistic PCA with {} components of the months 1951–1991. Gray: land, and below also cells that \
             were seen. Errors: {} °C root mean squared, climatology {} °C.",
            recovered.n_components,
            fixed(month.rmse, 3),
            fixed(month.climatology, 3)
        ),
        across: 2,
        panels: vec![
            panel("truth", Some(largest), &|j| Some(truth(j)))?,
            panel("recovered, with what was seen", Some(largest), &|j| Some(seen(j)))?,
            panel("error of hidden cells", None, &|j| hidden[j].map(|c| c.mean - truth(j)))?,
            panel("stated standard deviation", None, &|j| hidden[j].map(|c| c.sd))?,
        ],
    };
    let rows = vec![
        Row::claim(
            "the month against climatology",
            "worse",
            &format!("{} °C against {} °C", fixed(month.rmse, 3), fixed(month.climatology, 3)),
            month.rmse > month.climatology,
        )
        .why(WHY),
        Row::claim(
            "hidden cells south of 60° S",
            "obvious errors",
            &format!(
                "{} cells, largest error {} °C, root mean squared {} °C, climatology {} °C",
                southern.n,
                fixed(worst, 2),
                fixed(southern.rmse, 3),
                fixed(southern.climatology, 3)
            ),
            southern.rmse > southern.climatology,
        )
        .why(WHY),
    ];
    Ok(Findings {
        charts: vec![chart],
        tables: vec![Comparison::with_paper(&format!("October 1991 behind the mask {}", MASKS[MASK].name), rows)],
        notes: vec![
            "The authors' notebook plots October 1991 as the original and July 1990 as the recovered month, both \
             under the name of July 1991. COBE-SST2 stands for the reference of the paper, NOAA OI v2."
                .to_owned(),
        ],
    })
}
