//! Tables beyond the memory they may take: gone through block by block, to the same bytes.

use super::{run_in, succeed};
use covary::Matrix;
use covary::data::block_rows;
use covary::io::{Cells, Format, Sheet};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

const COLUMNS: usize = 64;

/// Rows of two factors and noise, with gaps, written with three decimals so that every format has the same numbers.
fn table(rows: usize) -> Matrix {
    let unit = |k: usize| (k as f64 * 0.618_033_988_749_894_9).fract() - 0.5;
    Matrix::from_fn(rows, COLUMNS, |i, j| {
        if (i * 31 + j * 17).is_multiple_of(23) {
            return f64::NAN;
        }
        let signal = unit(3 * i + 1) * unit(j + 5) + unit(7 * i + 2) * unit(11 * j + 3);
        (1000.0 * (10.0 * signal + unit(i * COLUMNS + j * j))).round() / 1000.0
    })
}

fn written(root: &Path, name: &str, rows: &Matrix) {
    let mut sheet = Sheet::default();
    sheet.push_matrix((1..=COLUMNS).map(|j| format!("x{j}")), rows);
    let file = File::create(root.join(name)).unwrap();
    sheet.write(Format::of_file(name).unwrap(), std::io::BufWriter::new(file)).unwrap();
}

#[test]
fn a_table_beyond_memory_leads_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let all = table(block_rows(COLUMNS) + 1500);
    for name in ["t.csv", "t.csv.gz", "t.npy", "t.parquet"] {
        written(root, name, &all);
    }
    fs::create_dir_all(root.join("t/year=2001")).unwrap();
    let half = |from: usize, to: usize| Matrix::from_fn(to - from, COLUMNS, |i, j| all[(from + i, j)]);
    written(root, "t/a.parquet", &half(0, 40_000));
    written(root, "t/year=2001/b.parquet", &half(40_000, all.n_rows()));
    let how = "--components 2 --inference em --max-iter 2";
    let said = succeed(root, &format!("fit t.npy {how} --threads 2 -o memory.covary"));
    assert!(!said.err.contains("block"), "{}", said.err);
    let expected = fs::read(root.join("memory.covary")).unwrap();
    for (name, threads) in
        [("t.npy", 1), ("t.npy", 2), ("t.parquet", 2), ("t.csv", 2), ("t.csv.gz", 1), ("t", 1)]
    {
        let call = format!("fit {name} {how} --memory 20M --threads {threads} -o disk.covary");
        let said = succeed(root, &call);
        assert!(fs::read(root.join("disk.covary")).unwrap() == expected, "{call}");
        let first = said.err.lines().next().unwrap_or_default();
        assert!(
            first.contains("gone through block by block") && first.contains("65\u{202f}536 rows at a time"),
            "{first}"
        );
        // Facts and a sample of rows, pairs of columns, and three E-steps.
        assert!(said.err.contains("gone through 6 times"), "{}", said.err);
    }
}

#[test]
fn other_models_of_a_table_beyond_memory_have_the_same_bytes_and_a_killed_fit_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    written(root, "t.npy", &table(block_rows(COLUMNS) + 300));
    for how in [
        "--model gaussian --max-iter 1",
        "--model bpca --components 3 --max-iter 2",
        "--model bpca --inference mean-field --components 3 --max-iter 2",
        "--model pca --inference em --components 2 --max-iter 2",
        "--model fa --inference mean-field --components 2 --max-iter 2",
        "--model mppca --mixtures 2 --components 2 --max-iter 2",
        "--model mfa --mixtures 2 --components 1 --option restarts=0 --max-iter 2",
        "--model gmm --mixtures 2 --max-iter 1",
    ] {
        succeed(root, &format!("fit t.npy {how} -o memory.covary"));
        let said = succeed(root, &format!("fit t.npy {how} --memory 20M -o disk.covary"));
        assert!(said.err.contains("gone through block by block"), "{}", said.err);
        let bytes = |name: &str| fs::read(root.join(name)).unwrap();
        assert!(bytes("disk.covary") == bytes("memory.covary"), "{how}");
    }
    // Ended after one step, begun again: the start and that step are not gone through again.
    let fit = "fit t.npy --components 2 --memory 20M --checkpoint passes";
    let passes = |err: &str| -> usize {
        let line = err.lines().find(|line| line.starts_with("gone through ")).expect("it is said");
        line.split(' ').nth(2).unwrap().parse().unwrap()
    };
    let alone = succeed(root, "fit t.npy --components 2 --memory 20M --max-iter 3 -o alone.covary");
    let short = succeed(root, &format!("{fit} --max-iter 1 -o short.covary"));
    let rest = succeed(root, &format!("{fit} --max-iter 3 -o rest.covary"));
    assert!(rest.err.contains("goes on after 3 passes, from passes"), "{}", rest.err);
    assert_eq!((passes(&alone.err), passes(&short.err), passes(&rest.err)), (7, 5, 4));
    assert!(fs::read(root.join("rest.covary")).unwrap() == fs::read(root.join("alone.covary")).unwrap());
    // In memory, too: the same sums.
    let here = "fit t.npy --inference em --components 2 --max-iter 3 --checkpoint passes -o here.covary";
    assert!(succeed(root, here).err.contains("goes on after 5 passes"));
    assert!(fs::read(root.join("here.covary")).unwrap() == fs::read(root.join("alone.covary")).unwrap());
    // A mixture, whose start is found on rows that are gone through again. It has one start: several are compared after 20 steps, or
    // after --max-iter if that is less, so that a fit that was ended earlier asks for other passes.
    let one = "fit t.npy --model mppca --mixtures 2 --components 1 --option restarts=0";
    let fit = format!("{one} --checkpoint steps");
    let alone = succeed(root, &format!("{one} --memory 20M --max-iter 3 -o alone.covary"));
    let short = succeed(root, &format!("{fit} --memory 20M --max-iter 1 -o short.covary"));
    let rest = succeed(root, &format!("{fit} --memory 20M --max-iter 3 -o rest.covary"));
    assert!(rest.err.contains("goes on after 2 passes, from steps"), "{}", rest.err);
    assert_eq!((passes(&alone.err), passes(&short.err), passes(&rest.err)), (7, 5, 5));
    assert!(fs::read(root.join("rest.covary")).unwrap() == fs::read(root.join("alone.covary")).unwrap());
    let here = succeed(root, &format!("{fit} --max-iter 3 -o here.covary"));
    assert!(here.err.contains("goes on after 4 passes"), "{}", here.err);
    assert!(fs::read(root.join("here.covary")).unwrap() == fs::read(root.join("alone.covary")).unwrap());
    let fit = "fit t.npy --components 2 --memory 20M --checkpoint passes";
    let other = format!("{fit} --model fa -o x.covary");
    let said = run_in(root, &other.split(' ').collect::<Vec<_>>(), b"");
    assert!(said.code == Some(1) && said.err.contains("was begun with another table"), "{}", said.err);
}

#[test]
fn answers_about_rows_beyond_memory_have_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let all = table(block_rows(COLUMNS) + 700);
    for name in ["t.npy", "t.parquet", "t.csv"] {
        written(root, name, &all);
    }
    written(root, "small.npy", &table(2000));
    succeed(root, "fit small.npy --components 2 -o m.covary");
    succeed(root, "fit small.npy --model mppca --mixtures 2 --components 2 --option restarts=0 -o k.covary");
    for (verb, input, output) in [
        ("transform m.covary", "t.npy", "s.csv"),
        ("transform m.covary", "t.parquet", "s.parquet"),
        ("transform m.covary", "t.csv", "s.npy"),
        ("reconstruct m.covary", "t.npy", "r.npy"),
        ("reconstruct m.covary --orthogonal", "t.csv", "r.csv"),
        ("score m.covary", "t.npy", "s.csv"),
        ("score m.covary", "t.csv", "s.parquet"),
        ("impute --model m.covary --no-check", "t.npy", "f.npy"),
        ("impute --model m.covary --no-check", "t.parquet", "f.parquet"),
        ("transform k.covary", "t.npy", "s.csv"),
        ("impute --model k.covary --no-check", "t.npy", "f.npy"),
    ] {
        let memory = succeed(root, &format!("{verb} {input} -o {output}"));
        let bytes = fs::read(root.join(output)).unwrap();
        let disk = succeed(root, &format!("{verb} {input} --max-memory 20M -o {output}"));
        assert!(disk.err.contains("gone through block by block"), "{}", disk.err);
        assert!(fs::read(root.join(output)).unwrap() == bytes, "{verb} {input}");
        if verb.starts_with("score") {
            let line = |said: &str| said.lines().find(|l| l.starts_with("log-likelihood")).map(str::to_owned);
            assert_eq!(line(&disk.err), line(&memory.err));
        }
    }
    // A text of several pieces: names beside the numbers, a column of whole numbers with a point in its last row only.
    let row = |i: usize| {
        let cell = |j: usize| {
            if (i + j).is_multiple_of(7) { String::new() } else { ((i * j) % 89).to_string() }
        };
        format!("\"row {i}\",{},{} ,{},{}\n", cell(1), cell(2), cell(3), cell(64))
    };
    let mut text = String::from("name,x1,x2,x3,x64\r\n");
    text.extend((0..800_000).map(row));
    text.push_str("last,1,2,3.0,4");
    fs::write(root.join("long.csv"), text).unwrap();
    let few = table(2000);
    let columns = [0, 1, 2, 63];
    let mut sheet = Sheet::default();
    let few = Matrix::from_fn(2000, 4, |i, k| few[(i, columns[k])]);
    sheet.push_matrix(columns.map(|j| format!("x{}", j + 1)), &few);
    sheet.write(Format::CSV, File::create(root.join("few.csv")).unwrap()).unwrap();
    succeed(root, "fit few.csv --components 1 -o n.covary");
    succeed(root, "impute --model n.covary --no-check long.csv -o memory.csv");
    let said = succeed(root, "impute --model n.covary --no-check long.csv --memory 10M -o disk.csv");
    assert!(said.err.contains("gone through block by block"), "{}", said.err);
    assert!(fs::read(root.join("disk.csv")).unwrap() == fs::read(root.join("memory.csv")).unwrap());
    let other = "impute --model n.covary long.csv --memory 10M -o f.npy";
    let other = run_in(root, &other.split(' ').collect::<Vec<_>>(), b"");
    assert!(other.code == Some(1) && other.err.contains("into text of the same kind"), "{}", other.err);
}

#[test]
fn what_is_sampled_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    written(root, "t.npy", &table(3000));
    let said = succeed(root, "fit t.npy --memory 1M --check -o chosen.covary");
    for words in [
        "the number of components is chosen on 3000 rows of 3000",
        "the check is made on 3000 rows of 3000",
        "chose ",
        "checked on",
    ] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    // On a sample that is the whole table the choice is that of the table in memory.
    succeed(root, "fit t.npy --inference em --check -o memory.covary");
    assert!(fs::read(root.join("chosen.covary")).unwrap() == fs::read(root.join("memory.covary")).unwrap());
    let mixture = "fit t.npy --model mfa --components 1 --option restarts=1 --max-iter 5";
    let said = succeed(root, &format!("{mixture} --memory 1M -o chosen.covary"));
    assert!(
        said.err.contains("the number of components and models is chosen on 3000 rows of"),
        "{}",
        said.err
    );
    succeed(root, &format!("{mixture} -o memory.covary"));
    assert!(fs::read(root.join("chosen.covary")).unwrap() == fs::read(root.join("memory.covary")).unwrap());
}

/// The call fails, and says all of this.
#[track_caller]
fn refused(root: &Path, call: &str, words: &[&str]) {
    let said = run_in(root, &call.split_whitespace().collect::<Vec<_>>(), b"");
    assert!(said.code.is_some_and(|code| code > 0), "{call}: {}", said.err);
    assert!(words.iter().all(|words| said.err.contains(words)), "{call}: {}", said.err);
}

#[test]
fn what_needs_the_table_in_memory_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    written(root, "t.npy", &table(3000));
    written(root, "t.arrow", &table(3000));
    fs::create_dir(root.join("empty")).unwrap();
    fs::create_dir(root.join("parts")).unwrap();
    written(root, "parts/a.parquet", &table(300));
    let small = table(300);
    written(root, "s.npy", &small);
    let times: Vec<String> = (0..300).map(|i| format!("{i},{},{}\n", small[(i, 1)], small[(i, 2)])).collect();
    fs::write(root.join("times.csv"), format!("day,a,b\n{}", times.concat())).unwrap();
    succeed(root, "fit s.npy --components 2 -o m.covary");
    succeed(root, "fit s.npy --model ica --inference noisy --components 2 --max-iter 5 -o ica.covary");
    for (how, what) in [
        ("fit t.npy --model tppca", "model `tppca`"),
        ("fit t.npy --model bpca --inference gibbs", "method `gibbs`"),
        ("fit t.npy --model ica", "model `ica`"),
        ("fit t.npy --model fa --inference newton", "method `newton`"),
        ("fit t.npy --model mppca --option ridge=1e-6", "a mixture with a ridge"),
        ("fit t.npy --inference spectral", "method `spectral`"),
        ("fit t.npy --wild down-weight", "--wild down-weight"),
        ("fit t.npy --transpose", "--transpose"),
        ("fit t.npy --target x1", "--target"),
        ("fit t.arrow", "the format arrow"),
        ("fit times.csv --model dfm --time day", "model `dfm`"),
        ("select t.npy", "`covary select`"),
        ("report t.npy -o r.html", "`covary report`"),
        ("plot t.npy --kind correlation -o p.svg", "`covary plot`"),
        ("plot m.covary t.npy --kind scores -o p.svg", "`covary plot`"),
        ("impute t.npy", "`covary impute` without a model file"),
        ("impute t.npy --model m.covary --cells c.csv -o f.npy", "--cells"),
        ("impute t.npy --model m.covary --draws 2 -o f.npy", "--draws"),
        ("impute t.npy --model m.covary --shift x1=1 -o f.npy", "--shift"),
        ("impute t.npy --model m.covary --wild down-weight -o f.npy", "--wild down-weight"),
        ("transform m.covary t.npy --covariance", "--covariance"),
        ("transform m.covary t.npy --draw", "--draw"),
        ("transform ica.covary t.npy", "a model `ica`"),
        ("score m.covary t.npy --predictive exact", "--predictive exact"),
    ] {
        let limit = if how.contains("times.csv") { "3K" } else { "1M" };
        let call = format!("{how} --memory {limit}");
        refused(root, &call, &[&format!("; {what} needs the table in memory: "), "(--max-memory SIZE)"]);
    }
    for (call, what) in [
        ("fit parts --model tppca", "model `tppca`"),
        ("fit parts --wild down-weight", "--wild down-weight"),
        ("fit parts --transpose", "--transpose"),
        ("select parts", "`covary select`"),
        ("report parts -o r.html", "`covary report`"),
        ("plot parts --kind correlation -o p.svg", "`covary plot`"),
        ("impute parts", "`covary impute` without a model file"),
        ("transform m.covary parts --covariance", "--covariance"),
    ] {
        let words =
            format!("parts: is a folder, which is gone through block by block, and {what} needs the table");
        refused(root, call, &[&words, "give one file"]);
    }
    // Of standard input, too, once there is more than memory holds.
    let rows = "1.5,2.5\n".repeat(50_000);
    let call = ["fit", "-", "--memory", "100K", "--wild", "down-weight", "-o", "p.covary"];
    let said = run_in(root, &call, format!("a,b\n{rows}").as_bytes());
    assert!(
        said.code == Some(1) && said.err.contains("--wild down-weight goes with rows that"),
        "{}",
        said.err
    );
    assert!(!root.join("p.covary").exists());
    // A folder is never read as a whole: more memory is no advice.
    succeed(root, "fit s.npy --components 2 --exclude x1 -o less.covary");
    let call = ["transform", "less.covary", "parts"];
    let said = run_in(root, &call, b"");
    assert!(said.code == Some(2) && said.err.contains("say --bare"), "{}", said.err);
    assert!(!said.err.contains("--max-memory"), "{}", said.err);
    refused(root, "fit empty", &["no file *.parquet"]);
    refused(root, "fit t.npy --memory 1M --components 100", &["100 components are too many"]);
}

#[test]
fn no_output_is_a_part_of_the_folder_that_is_read_or_becomes_one() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir_all(root.join("t/year=2001")).unwrap();
    written(root, "t/a.parquet", &table(200));
    written(root, "t/year=2001/b.parquet", &table(300));
    succeed(root, "fit t --components 2 -o m.covary");
    let bytes = |name: &str| fs::read(root.join(name)).unwrap();
    let before = (bytes("t/a.parquet"), bytes("t/year=2001/b.parquet"));
    let mut outputs =
        vec!["t/a.parquet", "t/year=2001/b.parquet", "t/new.parquet", "t/year=2001/new.parquet"];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("t", root.join("same")).unwrap();
        std::os::unix::fs::symlink("t/a.parquet", root.join("link.parquet")).unwrap();
        outputs.extend(["same/a.parquet", "same/new.parquet", "link.parquet"]);
    }
    for output in outputs {
        for verb in [
            "fit t --components 2",
            "impute t --model m.covary",
            "impute t --model m.covary -o f.csv --cells",
            "transform m.covary t",
            "score m.covary t",
            "reconstruct m.covary t",
            "fit t --components 2 -o n.covary --checkpoint",
        ] {
            let how = if verb.ends_with("--cells") || verb.ends_with("--checkpoint") { "" } else { " -o" };
            let call = format!("{verb}{how} {output}");
            let said = run_in(root, &call.split(' ').collect::<Vec<_>>(), b"");
            assert!(said.code == Some(2), "{call}: {}", said.err);
            assert!(
                said.err.contains(output) && said.err.contains("a part of the table"),
                "{call}: {}",
                said.err
            );
        }
    }
    assert!((bytes("t/a.parquet"), bytes("t/year=2001/b.parquet")) == before);
    // What is no Parquet file is no part of the table.
    succeed(root, "fit t --components 2 -o t/m.covary");
    succeed(root, "score m.covary t -o t/score.csv");
    assert!(succeed(root, "fit t --components 2 -o m.covary").err.contains("500 rows"));
}

/// A text of four columns of numbers, with this many rows and an odd one at the end.
fn long_text(rows: usize, odd: &str) -> String {
    let row = |i: usize| format!("{}.5,{},{},{}\n", i % 97, i % 13, (i * i) % 31, (i * 7) % 11);
    let mut text = String::from("x1,x2,x3,x4\n");
    text.extend((0..rows).map(row));
    text + odd
}

#[test]
fn what_is_wrong_with_a_late_row_names_the_input_and_says_the_same_as_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let n = 1_600_000;
    for (name, odd) in [("text.csv", "1,2,oops,4\n1,2,3,4\n"), ("ragged.csv", "1,2,3\n")] {
        fs::write(root.join(name), long_text(n, odd)).unwrap();
    }
    assert!(fs::metadata(root.join("text.csv")).unwrap().len() > 1 << 24);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(long_text(n, "").as_bytes()).unwrap();
    let gz = gz.finish().unwrap();
    fs::write(root.join("cut.csv.gz"), &gz[..gz.len() - 100]).unwrap();
    fs::write(root.join("few.csv"), long_text(500, "")).unwrap();
    succeed(root, "fit few.csv --components 1 -o m.covary");
    succeed(root, "fit few.csv --model mppca --mixtures 2 --components 1 --option restarts=0 -o k.covary");
    let hints = ["row 1600001 (line 1600002), column `x3`", "`oops`", "--gaps 'oops'", "--exclude 'x3'"];
    for verb in ["fit text.csv --components 1", "impute text.csv --model m.covary", "score m.covary text.csv"]
    {
        for memory in ["", " --memory 20M"] {
            refused(root, &format!("{verb}{memory} -o out"), &[&["covary: text.csv: "][..], &hints].concat());
        }
    }
    refused(root, "score m.covary text.csv --memory 20M", &[&["covary: text.csv: "][..], &hints].concat());
    for verb in ["impute --model m.covary", "score m.covary", "fit --components 1"] {
        let call = |name: &str| format!("{verb} {name} --memory 20M -o out");
        refused(root, &call("ragged.csv"), &["covary: ragged.csv: ", "row 1600001", "with 3 cells of 4"]);
        refused(root, &call("cut.csv.gz"), &["covary: cut.csv.gz: ", "not a whole gzip file"]);
    }
    written(root, "t.npy", &table(3000));
    written(root, "u.npy", &table(300));
    succeed(root, "fit u.npy --model mppca --mixtures 2 --components 1 --option restarts=0 -o k.covary");
    for memory in ["", " --memory 1M"] {
        let said = "covary: k.covary: holds a mixture";
        refused(root, &format!("reconstruct k.covary t.npy{memory} -o r.csv"), &[said]);
    }
    assert!(!root.join("out").exists() && !root.join("r.csv").exists());
}

#[test]
fn parts_of_a_folder_that_differ_are_named_with_their_columns() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let numbers = Matrix::from_fn(40, 4, |i, j| ((i * (j + 3) + i * i) % 17) as f64);
    let part = |name: &str, columns: &[&str]| {
        let mut sheet = Sheet::default();
        sheet.push_matrix(columns.iter().map(|name| (*name).to_owned()), &numbers);
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        sheet.write(Format::of_file(name).unwrap(), File::create(path).unwrap()).unwrap();
    };
    for (name, columns, words) in [
        (
            "less",
            ["a", "b", "c", "e"],
            "lacks the column of numbers `d`, which the first file has, and has the column",
        ),
        ("order", ["a", "b", "d", "c"], "has the columns of numbers of the first file in another order"),
    ] {
        part(&format!("{name}/p0.parquet"), &["a", "b", "c", "d"]);
        part(&format!("{name}/p1.parquet"), &columns);
        refused(root, &format!("fit {name} --components 1 -o m"), &[&format!("{name}/p1.parquet: {words}")]);
    }
}

#[test]
fn a_table_that_changes_while_it_is_gone_through_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::write(root.join("t.csv"), long_text(1_600_000, "")).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    let said = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = File::options().append(true).open(root.join("t.csv")).unwrap();
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                file.write_all(b"1,2,3,4\n").unwrap();
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        });
        let call = ["fit", "t.csv", "--components", "1", "--memory", "20M", "-o", "m.covary"];
        let said = run_in(root, &call, b"");
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        said
    });
    let words = "covary: t.csv: the rows could not be read: changed while it was read";
    assert!(said.code == Some(1) && said.err.contains(words), "{}", said.err);
    assert!(!root.join("m.covary").exists());
}

#[test]
fn what_is_wrong_with_a_checkpoint_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    written(root, "t.npy", &table(3000));
    let fit = "fit t.npy --components 2 --memory 1M --checkpoint";
    succeed(root, &format!("{fit} passes --max-iter 1 -o m.covary"));
    let kept = fs::read(root.join("passes")).unwrap();
    // A disk may leave zeros where something was about to be written when the power went.
    fs::write(root.join("passes"), [&kept[..], &[0; 64]].concat()).unwrap();
    let said = succeed(root, &format!("{fit} passes --max-iter 2 -o m.covary"));
    assert!(said.err.contains("goes on after 3 passes"), "{}", said.err);
    fs::write(root.join("text"), "what a text holds\n").unwrap();
    refused(
        root,
        &format!("{fit} text -o n.covary"),
        &["covary: text: is not a checkpoint of passes; name another"],
    );
    #[cfg(unix)]
    {
        // Files of this process may have one block of bytes: as a disk that is full.
        let run =
            format!("trap '' XFSZ; ulimit -f 1; exec {} {fit} new -o n.covary", env!("CARGO_BIN_EXE_covary"));
        let said = std::process::Command::new("sh").current_dir(root).args(["-c", &run]).output().unwrap();
        let err = String::from_utf8_lossy(&said.stderr);
        assert!(said.status.code() == Some(1) && err.contains("covary: new: cannot be written: "), "{err}");
        succeed(root, &format!("{fit} new --max-iter 2 -o n.covary"));
        assert!(fs::read(root.join("n.covary")).unwrap() == fs::read(root.join("m.covary")).unwrap());
    }
    written(root, "t.npy", &table(2999));
    let words = ["covary: passes: is the checkpoint of another table, or of this one before it changed"];
    refused(root, &format!("{fit} passes -o n.covary"), &words);
}

#[test]
fn columns_that_label_rows_and_a_test_that_is_left_out_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let rows = table(3000);
    let mut sheet = Sheet::default();
    sheet.push("number", Cells::Integers((0..3000).collect()));
    sheet.push_matrix((1..=COLUMNS).map(|j| format!("x{j}")), &rows);
    for name in ["t.npy", "t.csv", "t.parquet"] {
        let file = std::io::BufWriter::new(File::create(root.join(name)).unwrap());
        sheet.write(Format::of_file(name).unwrap(), file).unwrap();
    }
    for name in ["t.csv", "t.parquet"] {
        let fit = format!("fit {name} --components 2 --max-iter 2 -o m.covary");
        let (here, disk) = (succeed(root, &fit).err, succeed(root, &format!("{fit} --memory 1M")).err);
        let words = "`number` (numbers of the rows) looks like identifiers or dates";
        assert!(here.contains(words), "{here}");
        let sampled = format!("in a sample of 3000 rows: {words}");
        assert!(disk.contains(&sampled) && disk.contains("(--id 'number')"), "{disk}");
        let asked = succeed(root, &format!("{fit} --memory 1M --columns number:x9")).err;
        assert!(!asked.contains("identifiers"), "{asked}");
    }
    // Factor analysis: all that is said of it in memory, but whether the factors are enough.
    let fit = "fit t.npy --model fa --inference em --components 2 --max-iter 2 -o m.covary";
    let here = succeed(root, fit).err;
    let disk = succeed(root, &format!("{fit} --memory 1M")).err;
    assert!(here.contains("RMSEA") && !here.contains("left out"), "{here}");
    assert!(!disk.contains("RMSEA") && disk.contains("the test of fit is left out: it needs"), "{disk}");
}
