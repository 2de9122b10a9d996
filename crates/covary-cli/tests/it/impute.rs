use super::{Said, folder_with_examples, repository};
use covary::family::{AnyMethod, Family};
use std::fs;
use std::process::{Command, Stdio};

fn run(arguments: &[&str], stdin: &str) -> Said {
    super::run(&[&["impute"], arguments].concat(), stdin)
}

#[track_caller]
fn check_fails(arguments: &[&str], stdin: &str, code: i32, says: &str) {
    let said = run(arguments, stdin);
    assert_eq!(said.code, Some(code), "{}", said.err);
    assert!(said.err.contains(says), "expected `{says}` in\n{}", said.err);
    assert!(said.out.is_empty());
}

/// y follows x closely; z is text.
const SMALL: &str =
    "z,x,y\r\n\"a,1\",1,2.1\r\nb, 2 ,3.9\r\nc,+3,NA\r\nd,4e0,8.1\r\n\"e\",5,10.0\r\nf,,12.1\r\ng,7,13.9";

#[test]
fn a_gap_is_filled_from_its_neighbors_and_nothing_else_changes() {
    let said = run(&["-", "--components", "1"], SMALL);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let lines: Vec<&str> = said.out.split("\r\n").collect();
    for (got, came) in lines.iter().zip(SMALL.split("\r\n")) {
        let gaps = [came.ends_with("NA"), came.contains(",,")];
        if !gaps[0] && !gaps[1] {
            assert_eq!(*got, came);
        }
    }
    let y: f64 = lines[3].strip_prefix("c,+3,").expect("observed cells stay").parse().expect("a number");
    let x: f64 = lines[6].split(',').nth(1).expect("three cells").parse().expect("a number");
    assert!((y - 6.0).abs() < 0.5 && (x - 6.0).abs() < 0.5, "{y} {x}");
    assert!(lines[6].starts_with("f,") && lines[6].ends_with(",12.1"));
    assert!(!said.out.ends_with('\n'));
}

#[test]
fn a_complete_table_passes_through() {
    let table = "x,y\n1,2\n3,\"4\"\n";
    let said = run(&["-"], table);
    assert_eq!((said.code, said.out.as_str()), (Some(0), table));
    assert!(said.err.contains("no gaps"));
}

#[test]
fn only_the_gaps_of_the_wine_table_change_and_its_intervals_cover_the_truth() {
    let folder = folder_with_examples();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let gaps = at("examples/wine_gaps.csv");
    let said = run(&[&gaps, "-o", &at("filled.csv"), "--cells", &at("cells.csv")], "");
    assert_eq!(said.code, Some(0), "{}", said.err);
    let read = |path: String| fs::read_to_string(path).expect("written");
    let (whole, with_gaps, filled) = (read(at("examples/wine.csv")), read(gaps), read(at("filled.csv")));

    let header: Vec<&str> = whole.lines().next().expect("a header").split(',').collect();
    let cells_file = read(at("cells.csv"));
    let mut cells = cells_file.lines();
    assert_eq!(cells.next(), Some("row,column,value,mean,sd,lower,upper"));
    let (mut n, mut covered) = (0, 0);
    for (row, ((whole, gaps), filled)) in whole.lines().zip(with_gaps.lines()).zip(filled.lines()).enumerate()
    {
        for (j, ((truth, came), left)) in
            whole.split(',').zip(gaps.split(',')).zip(filled.split(',')).enumerate()
        {
            if !came.is_empty() {
                assert_eq!(left, came, "row {row}, column {j}");
                continue;
            }
            let cell: Vec<&str> = cells.next().expect("a line per gap").split(',').collect();
            assert_eq!(cell[..3], [row.to_string().as_str(), header[j], left]);
            let number = |k: usize| cell[k].parse::<f64>().expect("a number");
            let truth: f64 = truth.parse().expect("a number");
            n += 1;
            covered += usize::from((number(5)..number(6)).contains(&truth));
        }
    }
    assert_eq!((n, cells.next()), (228, None));
    // 228 cells at 95 %: three standard errors are 4.3 %.
    let share = f64::from(u32::try_from(covered).expect("few")) / 228.0;
    assert!((share - 0.95).abs() < 0.043, "{covered} of {n} intervals cover the truth");
}

#[test]
fn words_go_to_stderr_and_quiet_has_none() {
    let said = run(&["-", "--components", "1"], SMALL);
    for words in ["7 rows", "2 columns of numbers", "2 gaps", "`z`", "1 component", "95 % from"] {
        assert!(said.err.contains(words), "expected `{words}` in\n{}", said.err);
    }
    let quiet = run(&["-", "--components", "1", "--quiet"], SMALL);
    assert_eq!((quiet.err.as_str(), quiet.out), ("", said.out));
}

#[test]
fn a_long_list_is_cut_and_says_how_to_get_the_rest() {
    let gaps = repository("examples/wine_gaps.csv").display().to_string();
    let said = run(&[&gaps, "--components", "2"], "");
    assert!(said.err.contains("… and 216 more; --cells FILE writes them all"), "{}", said.err);
}

#[test]
fn a_wrong_call_is_exit_2() {
    check_fails(&[], "", 2, "<DATA>");
    check_fails(
        &["-", "--model", "oracle"],
        SMALL,
        2,
        &format!("--model `oracle` is neither auto, {} nor a model file", Family::names(|_| true)),
    );
    check_fails(
        &["-", "--inference", "magic"],
        SMALL,
        2,
        &format!("give one of {}", AnyMethod::names().join(", ")),
    );
    check_fails(&["-", "--delimiter", "ab"], SMALL, 2, "give one character");
    check_fails(&["-", "--format", "docx"], SMALL, 2, "--format: format `docx` is not known");
    check_fails(&["-", "--json"], SMALL, 2, "--json takes standard output");
    check_fails(&["-", "--draws", "3"], SMALL, 2, "--output");
    check_fails(
        &["-", "--components", "some"],
        SMALL,
        2,
        "give a whole number, a share of the variance such as 0.9, or `auto`",
    );
    check_fails(&["-", "--interval", "95"], SMALL, 2, "between 0 and 1");
    check_fails(&["-", "--threads", "0"], SMALL, 2, "a whole number from 1");
    check_fails(&["-", "--tol=-1"], SMALL, 2, "a number from 0");
    check_fails(&["-", "--cells", "-"], SMALL, 2, "same place");
    check_fails(&["-", "-o", "a.csv", "--cells", "a.csv"], SMALL, 2, "same place");
}

#[test]
fn a_failure_is_exit_1_and_names_the_file_the_row_and_the_column() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let air = folder.path().join("air.csv");
    fs::write(&air, "x,y\n1,2\n3,4\n5\n").expect("writable");
    let air = air.display().to_string();
    check_fails(&[&air], "", 1, &format!("covary: {air}: row 3 (line 4), column `y`: "));
    check_fails(&["-"], "x,y\n1,2\n3,inf\n", 1, "covary: standard input: row 2 (line 3), column `y`: `inf`");
    check_fails(&["-"], "x,y\n,\n,\n", 1, "covary: standard input: column `x` has no observed value");
    check_fails(&["-", "--components", "5"], SMALL, 1, "5 components are too many");
    check_fails(&["no-such-file.csv"], "", 1, "covary: no-such-file.csv: cannot be read: ");
}

#[test]
fn a_failure_leaves_the_old_output_alone_and_no_litter() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("out.csv");
    fs::write(&out, "precious").expect("writable");
    let path = out.display().to_string();
    check_fails(&["-", "-o", &path, "--components", "5"], SMALL, 1, "too many");
    assert_eq!(fs::read_to_string(&out).expect("still there"), "precious");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);

    let said = run(&["-", "-o", &path, "--components", "1"], SMALL);
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{}", said.err);
    assert!(fs::read_to_string(&out).expect("replaced").starts_with("z,x,y\r\n"));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1);

    let nowhere = folder.path().join("no/such/folder/out.csv").display().to_string();
    check_fails(&["-", "-o", &nowhere], SMALL, 1, "cannot be written");
}

#[cfg(unix)]
#[test]
fn an_output_file_has_the_permissions_of_any_other_and_keeps_its_own() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    let mode = |name: &str| fs::metadata(at(name)).expect("there").permissions().mode() & 0o777;
    fs::write(at("ordinary"), "").expect("writable");
    run(&["-", "-o", &at("new").display().to_string(), "--components", "1"], SMALL);
    assert_eq!(mode("new"), mode("ordinary"));

    fs::set_permissions(at("ordinary"), fs::Permissions::from_mode(0o620)).expect("ours");
    symlink(at("ordinary"), at("link")).expect("a link");
    run(&["-", "-o", &at("link").display().to_string(), "--components", "1"], SMALL);
    assert_eq!(mode("ordinary"), 0o620);
    assert!(fs::symlink_metadata(at("link")).expect("there").is_symlink());
    assert!(fs::read_to_string(at("ordinary")).expect("there").starts_with("z,x,y"));
}

#[test]
fn a_closed_pipe_is_success() {
    // Far more than a pipe holds, and a reader that leaves at once.
    let row = |i: i32| format!("{i},{},{}\n", 2 * i + i % 7, "n".repeat(100));
    let table = format!("x,y,note\n{}5,,n\n", (0..4000).map(row).collect::<String>());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("long.csv");
    fs::write(&data, table).expect("writable");
    let mut child = Command::new(env!("CARGO_BIN_EXE_covary"))
        .args(["impute", "--quiet", "--components", "1"])
        .arg(&data)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn the_thread_count_does_not_reach_the_numbers() {
    let gaps = repository("examples/wine_gaps.csv").display().to_string();
    let one = run(&[&gaps, "--threads", "1"], "").out;
    assert!(!one.is_empty());
    assert_eq!(run(&[&gaps, "--threads", "3"], "").out, one);
}

#[test]
fn options_reach_the_fit() {
    let gaps = repository("examples/wine_gaps.csv").display().to_string();
    let said = run(&[&gaps, "--model", "fa", "--components", "2", "--max-iter", "3"], "");
    assert!(
        said.err.contains("factor analysis, 2 components") && said.err.contains("limit of 3 steps"),
        "{}",
        said.err
    );
    assert!(said.err.contains("warning: still rising"), "{}", said.err);
    let plain = run(&[&gaps, "--components", "2", "--standardize=false"], "");
    assert!(!plain.err.contains("standardized"));
    let bare = run(&[&gaps, "--components", "2", "--standardize"], "");
    assert!(bare.err.contains("standardized"));
    assert_ne!(plain.out, bare.out);
    let loose = run(&[&gaps, "--components", "2", "--tol", "10"], "");
    assert_ne!(loose.out, bare.out);
}

#[test]
fn the_unit_of_a_column_changes_nothing_but_its_own_numbers() {
    let meters = run(&["-", "--components", "1", "-q"], "x,y\n1,2\n2,4.5\n3,\n4,8\n5,9.5\n");
    let millimeters = run(&["-", "--components", "1", "-q"], "x,y\n1,2000\n2,4500\n3,\n4,8000\n5,9500\n");
    let gap = |said: &Said| -> f64 {
        said.out
            .lines()
            .nth(3)
            .expect("five rows")
            .split(',')
            .nth(1)
            .expect("two cells")
            .parse()
            .expect("a number")
    };
    assert!((1000.0 * gap(&meters) - gap(&millimeters)).abs() < 1e-3, "{} {}", meters.out, millimeters.out);
}

#[test]
fn the_shipped_gaps_are_the_shipped_wine_with_a_tenth_of_the_cells_removed() {
    let read = |name: &str| fs::read_to_string(repository("examples").join(name)).expect("shipped");
    let (whole, gaps) = (read("wine.csv"), read("wine_gaps.csv"));
    let mut removed = 0;
    for (a, b) in whole.lines().zip(gaps.lines()) {
        for (a, b) in a.split(',').zip(b.split(',')) {
            removed += usize::from(b.is_empty());
            assert!(b.is_empty() || a == b);
        }
    }
    assert_eq!((whole.lines().count(), gaps.lines().count(), removed), (179, 179, 228));
}

#[test]
fn a_table_without_room_for_a_component_is_filled_with_means() {
    let said = run(&["-"], "x\n1\n2\n\"\"\n6\n");
    assert_eq!((said.code, said.out.as_str()), (Some(0), "x\n1\n2\n3\n6\n"), "{}", said.err);
    assert!(said.err.contains("intervals are not calibrated: too few cells can be hidden"), "{}", said.err);
    assert!(said.err.contains("Student's t"), "{}", said.err);
    let said = run(&["-", "--model", "ppca"], "x\n1\n2\n\"\"\n6\n");
    assert_eq!((said.code, said.out.as_str()), (Some(0), "x\n1\n2\n3\n6\n"), "{}", said.err);
    assert!(said.err.contains("no room for a component"), "{}", said.err);
}

#[test]
fn seven_rows_on_a_line_are_filled_by_the_line() {
    let said = run(&["-"], "a,b\n1,2\n2,4\n3,6\n4,8\n5,10\n6,\n7,14\n");
    let filled = said.out.lines().nth(6).and_then(|line| line.split(',').nth(1)).expect("two cells");
    let value: f64 = filled.parse().expect("a number");
    assert!((value - 12.0).abs() < 0.05, "{value}");
    assert!(said.err.contains("hidden cells chose 0.03 pseudo-rows"), "{}", said.err);
    assert!(said.err.contains("those of Student's t"), "{}", said.err);
}

#[test]
fn the_cells_never_land_on_the_input_or_on_the_filled_table() {
    let folder = folder_with_examples();
    let input = folder.path().join("examples/wine_gaps.csv");
    let before = fs::read(&input).expect("shipped");
    let path = |p: &str| folder.path().join(p).to_str().expect("UTF-8").to_owned();
    let (data, out) = (path("examples/wine_gaps.csv"), path("a.csv"));
    for arguments in [
        [data.as_str(), "-o", &out, "--cells", &path("examples/./wine_gaps.csv")],
        [data.as_str(), "-o", &out, "--cells", &path("examples/../a.csv")],
    ] {
        assert_eq!(run(&arguments, "").code, Some(2));
    }
    assert_eq!(fs::read(&input).expect("still there"), before);
}

#[test]
fn a_sparse_column_does_not_choose_for_the_others() {
    let table = fs::read_to_string(repository("examples/wine_gaps.csv")).expect("shipped");
    let rare =
        |(i, line): (usize, &str)| format!("{line},{}\n", ["rare", "3.3", "4.1"].get(i).unwrap_or(&""));
    let with_rare: String = table.lines().enumerate().map(rare).collect();
    let said = run(&["-"], &with_rare);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let after = said.err.split_once("intervals calibrated on ").expect("they are calibrated").1;
    let cells: usize = after.split(' ').next().and_then(|n| n.parse().ok()).expect("a number of cells");
    assert!(cells > 1000, "{}", said.err);
    let of = |table: &str| run(&["-", "--model", "ppca"], table).err;
    let chosen = |said: String| said.lines().find(|l| l.starts_with("chose ")).map(|l| l[..20].to_owned());
    assert_eq!(chosen(of(&with_rare)), chosen(of(&table)));
    assert!(chosen(of(&table)).is_some());
}

#[test]
fn a_table_with_no_cell_to_spare_is_filled_with_means() {
    let said = run(&["-", "--model", "ppca"], "a,b\n1,2\n2,\n,4\n");
    assert_eq!((said.code, said.out.as_str()), (Some(0), "a,b\n1,2\n2,3\n1.5,4\n"), "{}", said.err);
}

#[test]
fn a_wild_cell_is_warned_of_and_means_are_called_means() {
    let wave = |i: usize, j: usize| 3.0 * ((i * (j + 3)) as f64 * 0.7).sin();
    let mut table = "a,b\n".to_owned();
    for i in 0..40 {
        let a = if i == 11 { "1000000".to_owned() } else { wave(i, 0).to_string() };
        let b = if i == 20 { String::new() } else { wave(i, 1).to_string() };
        table.push_str(&[a, b].join(","));
        table.push('\n');
    }
    let said = run(&["-"], &table);
    assert!(said.err.contains("row 12 of `a` holds 1000000, far beyond all other values"), "{}", said.err);
    assert!(
        said.err.contains("gaps take the mean of their column, which predicts hidden cells best"),
        "{}",
        said.err
    );
}

/// Three columns that go together, 100 rows; `b` of row 50 is missing, and `a` is what is given there.
fn together(a: &str) -> String {
    let mut table = "a,b,c\n".to_owned();
    for i in 0..100 {
        let common = 3.0 * (i as f64 * 0.7).sin();
        let cell = |j: usize| format!("{:.4}", common + 0.3 * ((i * (7 * j + 5)) as f64).sin());
        let cells =
            if i == 49 { [a.to_owned(), String::new(), cell(2)] } else { [cell(0), cell(1), cell(2)] };
        table.push_str(&cells.join(","));
        table.push('\n');
    }
    table
}

/// The cells of row 50.
fn fifty(said: &Said) -> Vec<f64> {
    let line = said.out.lines().nth(50).expect("a hundred rows");
    line.split(',').map(|cell| cell.parse().expect("a number")).collect()
}

#[test]
fn wild_cells_are_named_and_may_count_as_missing() {
    let (good, spoiled) = (run(&["-"], &together("0.1")), run(&["-"], &together("1000000")));
    assert!(!good.err.contains("far from"), "{}", good.err);
    assert!(spoiled.err.contains("row 50 of `a` holds 1000000"), "{}", spoiled.err);
    let asked = run(&["-", "--wild", "down-weight"], &together("1000000"));
    assert_eq!(asked.code, Some(0), "{}", asked.err);
    assert!(
        asked.err.contains("far from what the rest of the row says: row 50 of `a` holds 1000000, expected")
            && asked.err.contains("they count as missing for the fit"),
        "{}",
        asked.err
    );
    // It leaves as it came, and what is imputed beside it does not follow it.
    assert_eq!(fifty(&asked)[0], 1e6);
    assert!((fifty(&asked)[1] - fifty(&good)[1]).abs() < 1.0, "{} {}", asked.out, good.out);
    // An odd pair of ordinary values: only the rows tell.
    let odd = run(&["-"], &together("-8"));
    assert!(odd.err.contains("row 50 of `a` holds -8, expected"), "{}", odd.err);
    assert!(odd.err.contains("check them; --wild down-weight"), "{}", odd.err);
}

#[test]
fn shifts_move_imputed_values_and_are_refused_by_name() {
    let table = together("0.1");
    let (plain, moved) = (run(&["-"], &table), run(&["-", "--shift", "b=-0.5", "--shift", "c=1"], &table));
    assert!(moved.err.contains("are shifted, in standard deviations of the column: `b` by -0.5, `c` by 1"));
    let by = fifty(&moved)[1] - fifty(&plain)[1];
    assert!((-1.3..-0.8).contains(&by), "{by}");
    assert_eq!((fifty(&moved)[0], fifty(&moved)[2]), (fifty(&plain)[0], fifty(&plain)[2]));
    check_fails(
        &["-", "--shift", "d=1"],
        &table,
        2,
        "--shift: `d` is no column that the model fills; give one of `a`, `b`, `c`",
    );
    for wrong in ["b", "b=", "b=high", "=1", "b=inf"] {
        check_fails(&["-", "--shift", wrong], &table, 2, "such as income=0.5");
    }
}
