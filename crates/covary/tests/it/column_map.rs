//! Does what a model filled land in the right cells of a wider table?

use covary::data::{Shape, simulate};
use covary::model::ColumnMap;
use covary::select::interval_coverage;
use covary::{Dataset, Density, Error, LinearGaussian, Matrix, Noise};

/// A wide table of 6 columns: the model's columns 0..4 at places 5, 0, 3, 2; column 1 is constant,
/// column 4 belongs to nobody. All have gaps.
fn fixture() -> (Dataset, LinearGaussian, ColumnMap) {
    let (whole, truth) = simulate::ppca(Shape { rows: 40, columns: 4, n_components: 1 }, 1);
    let gappy = simulate::hide(&whole, 0.3, 2);
    let columns = vec![5, 0, 3, 2];
    let wide = Matrix::from_fn(40, 6, |i, j| match columns.iter().position(|&place| place == j) {
        Some(k) => gappy.row(i)[k],
        None if i % 3 == 0 => f64::NAN,
        None => 7.0,
    });
    (Dataset::new(wide).unwrap(), truth, ColumnMap { columns, constants: vec![(1, 7.0)] })
}

#[test]
fn every_filled_cell_lands_in_its_place_row_by_row() {
    let (wide, model, column_map) = fixture();
    let narrow = column_map.dataset(&wide).unwrap();
    assert_eq!(narrow.column_names(), ["x6", "x1", "x4", "x3"]);
    let own = model.impute(&narrow).unwrap();
    let placed = column_map.imputed(own.clone(), &wide).unwrap();
    for i in 0..wide.n_rows() {
        for (k, &j) in column_map.columns.iter().enumerate() {
            assert_eq!(placed.values()[(i, j)].to_bits(), own.values()[(i, k)].to_bits());
        }
        assert_eq!(placed.values()[(i, 1)], 7.0);
        assert_eq!(placed.values()[(i, 4)].is_nan(), i % 3 == 0);
    }
    let at: Vec<_> = placed.cells().iter().map(|cell| (cell.row, cell.column)).collect();
    let gaps = |i: usize| (0..6).filter(move |&j| j != 4).map(move |j| (i, j));
    let expected: Vec<_> = (0..40).flat_map(gaps).filter(|&(i, j)| wide.row(i)[j].is_nan()).collect();
    assert_eq!(at, expected);
    assert!(placed.cells().iter().all(|c| c.mean == placed.values()[(c.row, c.column)]));
    assert!(placed.cells().iter().all(|c| (c.sd == 0.0) == (c.column == 1)));
}

#[test]
fn draws_are_placed_like_means() {
    let (wide, model, column_map) = fixture();
    let narrow = column_map.dataset(&wide).unwrap();
    for draw in model.multiple_impute(&narrow, 2, 3).unwrap() {
        let placed = column_map.values(&draw, &wide).unwrap();
        assert!((0..40).all(|i| placed[(i, 3)] == draw[(i, 2)] && placed[(i, 1)] == 7.0));
    }
}

#[test]
fn a_known_constant_is_inside_its_interval_of_no_width() {
    let nan = f64::NAN;
    let wide = Dataset::new(Matrix::from_rows(&[[7.0, 1.0], [nan, 1.0], [nan, 1.0]])).unwrap();
    let column_map = ColumnMap { columns: vec![1], constants: vec![(0, 7.0)] };
    let model = LinearGaussian::new(Matrix::zeros(1, 0), vec![0.0], Noise::Isotropic(1.0)).unwrap();
    let own = model.impute(&column_map.dataset(&wide).unwrap()).unwrap();
    let filled = column_map.imputed(own.clone(), &wide).unwrap();
    assert_eq!(filled.cells()[0].interval(0.95), Ok((7.0, 7.0)));
    let truth = Dataset::new(Matrix::from_rows(&[[7.0, 1.0], [7.0, 1.0], [8.0, 1.0]])).unwrap();
    assert_eq!(interval_coverage(&truth, &filled, &[0.5, 0.95]), Ok(vec![0.5, 0.5]));
}

#[test]
fn a_wrong_place_is_refused() {
    let (wide, model, column_map) = fixture();
    let own = model.impute(&column_map.dataset(&wide).unwrap()).unwrap();
    let check = |column_map: ColumnMap| column_map.imputed(own.clone(), &wide).unwrap_err();
    for columns in [vec![5, 0, 3, 6], vec![5, 0, 3, 5], vec![5, 0, 3, 1]] {
        let wrong = ColumnMap { columns, ..column_map.clone() };
        assert!(matches!(check(wrong.clone()), Error::OutOfRange { .. }));
        assert!(matches!(wrong.dataset(&wide), Err(Error::OutOfRange { .. })));
    }
    let infinite = ColumnMap { constants: vec![(1, f64::NAN)], ..column_map.clone() };
    assert!(matches!(check(infinite), Error::OutOfRange { name: "a constant", .. }));
    let fewer = ColumnMap { columns: vec![5, 0], ..column_map.clone() };
    assert!(matches!(check(fewer), Error::WrongLength { expected: 2, got: 4, .. }));
    let short = Matrix::zeros(3, 4);
    assert!(matches!(column_map.values(&short, &wide), Err(Error::WrongLength { expected: 40, got: 3, .. })));
    assert!(matches!(ColumnMap::default().dataset(&wide), Err(Error::EmptyTable { .. })));
}
