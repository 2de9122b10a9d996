//! Results on their way out: formats, places, and files that are whole or not there.

use crate::args::Target;
use crate::failure::Failure;
use crate::input::{Folder, is_pipe};
use crate::interrupt::{self, Temporary};
use covary::io::{Error, Format, Layout};
use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Where a result goes. A file is written beside its target and takes its place only when it is
/// whole, so that a failure leaves the old one as it was.
pub(crate) enum Output {
    Stdout,
    /// A device or a named pipe, which must not be replaced.
    Device(PathBuf),
    File(PathBuf),
}

impl Output {
    /// Finds the place, and makes sure before the work that it can be written: none, or `-`, is
    /// standard output.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path.filter(|p| !is_pipe(p)) else {
            return Ok(Self::Stdout);
        };
        let failed = |e| Failure::of_file(&path.display().to_string(), &Error::Write(e));
        // Through a symbolic link the file it points to is replaced, not the link.
        let target = match fs::canonicalize(path) {
            Ok(target) => target,
            Err(_) if fs::symlink_metadata(path).is_ok_and(|m| m.is_symlink()) => {
                return Err(Failure::work(
                    &path.display().to_string(),
                    "is a link that leads to no file; remove it, or name the file itself",
                ));
            }
            Err(_) => path.to_owned(),
        };
        match fs::metadata(&target) {
            Ok(m) if m.is_dir() => return Err(failed(ErrorKind::IsADirectory.into())),
            Ok(m) if !m.is_file() => return Ok(Self::Device(target)),
            _ => {}
        }
        let folder = folder_of(&target);
        if !folder.is_dir() {
            let why = format!("cannot be written: there is no folder {}", folder.display());
            return Err(Failure::work(&path.display().to_string(), why));
        }
        beside(&target).map_err(failed)?;
        Ok(Self::File(target))
    }

    /// Runs `write` on the destination; a file is in its place when this returns. That nobody reads
    /// a pipe to its end is success.
    pub(crate) fn write<T: Default>(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        self.write_from(write, |_| None)
    }

    /// The same of what is read while it is written: `of_source` knows what to say of errors that are none of the destination.
    pub(crate) fn write_from<T: Default>(
        &self,
        write: impl FnOnce(&mut dyn Write) -> Result<T, Error>,
        of_source: impl FnOnce(&Error) -> Option<Failure>,
    ) -> Result<T, Failure> {
        let outcome = match self {
            Self::Stdout => flushed(std::io::stdout().lock(), write),
            Self::Device(path) => File::options()
                .write(true)
                .open(path)
                .map_err(Error::Write)
                .and_then(|file| flushed(file, write)),
            Self::File(target) => whole(target, write),
        };
        match (self, outcome) {
            (_, Ok(answer)) => Ok(answer),
            (Self::Stdout | Self::Device(_), Err(Error::Write(e))) if e.kind() == ErrorKind::BrokenPipe => {
                Ok(T::default())
            }
            (_, Err(Error::Request(covary::Error::Interrupted))) => Err(Failure::Interrupted),
            (_, Err(e)) => Err(of_source(&e).unwrap_or_else(|| Failure::of_file(&self.name(), &e))),
        }
    }

    /// The bytes of a format that is not text would spoil a terminal.
    pub(crate) fn refuse_terminal(&self, what: &str) -> Result<(), Failure> {
        if matches!(self, Self::Stdout) && std::io::stdout().is_terminal() {
            return Err(Failure::Call(format!("{what} is not text for a terminal; name a file with -o")));
        }
        Ok(())
    }

    fn name(&self) -> String {
        match self {
            Self::Stdout => "standard output".to_owned(),
            Self::Device(path) | Self::File(path) => path.display().to_string(),
        }
    }
}

/// A buffer that is dropped says nothing of bytes that found no place.
fn flushed<T>(out: impl Write, write: impl FnOnce(&mut dyn Write) -> Result<T, Error>) -> Result<T, Error> {
    let mut out = BufWriter::new(out);
    let answer = write(&mut out)?;
    out.flush().map_err(Error::Write)?;
    Ok(answer)
}

fn whole<T>(target: &Path, write: impl FnOnce(&mut dyn Write) -> Result<T, Error>) -> Result<T, Error> {
    let file = beside(target).map_err(Error::Write)?;
    let _temporary = Temporary::new(file.path());
    let mut file = BufWriter::with_capacity(1 << 18, file);
    let answer = write(&mut file)?;
    let file = file.into_inner().map_err(|e| Error::Write(e.into_error()))?;
    interrupt::keep();
    file.persist(target).map_err(|e| Error::Write(e.error))?;
    Ok(answer)
}

fn folder_of(target: &Path) -> &Path {
    target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file to be written beside `target`, with the permissions it will have there.
fn beside(target: &Path) -> std::io::Result<NamedTempFile> {
    let folder = folder_of(target);
    let present = fs::metadata(target).ok().map(|m| m.permissions());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".covary-");
    if let Some(p) = present.clone().or_else(ordinary_permissions) {
        builder.permissions(p);
    }
    // The path of a file that nobody asked for would only confuse.
    let file = builder.tempfile_in(folder).map_err(|e| std::io::Error::from(e.kind()))?;
    if let Some(p) = present {
        // The mask of the process narrows what the builder asked for.
        fs::set_permissions(file.path(), p)?;
    }
    Ok(file)
}

/// What a program that simply creates a file would ask for; temporary files are private otherwise.
#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "other systems have none")]
fn ordinary_permissions() -> Option<fs::Permissions> {
    use std::os::unix::fs::PermissionsExt;
    Some(fs::Permissions::from_mode(0o666))
}

#[cfg(not(unix))]
fn ordinary_permissions() -> Option<fs::Permissions> {
    None
}

impl Target {
    /// The format asked for, that of the output's name, or `otherwise`.
    pub(crate) fn format(&self, otherwise: Format) -> Result<Format, Failure> {
        if let Some(word) = &self.output_format {
            let format = Format::from_name(word).map_err(|e| Failure::of_format("--output-format", &e))?;
            let refused = Error::NotWritten { format: format.layout.name() };
            return if format.layout.is_written() {
                Ok(format)
            } else {
                Err(Failure::of_format("--output-format", &refused))
            };
        }
        format_of(self.output.as_deref(), otherwise, "--output-format names another format for it")
    }

    /// Opens it for a format. With `json`, standard output is taken.
    pub(crate) fn open(&self, format: Format, json: bool) -> Result<Output, Failure> {
        let output = Output::open(self.output.as_deref())?;
        if !format.layout.is_text() || format.gzip {
            output.refuse_terminal(format.layout.name())?;
        }
        if json && matches!(output, Output::Stdout) {
            return Err(Failure::Call(
                "--json takes standard output; name a file for the data with -o".to_owned(),
            ));
        }
        Ok(output)
    }
}

/// The format of a file's name. A name without an ending, a device and a pipe have none and take `otherwise`; any
/// other ending is refused, for it says what the file will not be.
pub(crate) fn format_of(path: Option<&Path>, otherwise: Format, remedy: &str) -> Result<Format, Failure> {
    let Some(path) = path.filter(|p| !is_pipe(p)) else { return Ok(otherwise) };
    let named = Format::of_file(&path.to_string_lossy());
    if let Some(format) = named.filter(|format| format.layout.is_written()) {
        return Ok(format);
    }
    if path.extension().is_none() || is_device(path) {
        return Ok(otherwise);
    }
    let known: Vec<String> = Layout::NAMES
        .iter()
        .filter(|(layout, _)| layout.is_written())
        .flat_map(|(_, words)| *words)
        .map(|word| format!(".{word}"))
        .collect();
    if let Some(format) = named {
        let why = Error::NotWritten { format: format.layout.name() };
        return Err(Failure::Call(format!("{}: {why}", path.display())));
    }
    Err(Failure::Call(format!(
        "{}: tables are written as {}, text also with .gz behind it; end the name so, or {remedy}",
        path.display(),
        known.join(", ")
    )))
}

/// What must not be replaced by a file: a device, or a pipe with a name.
pub(crate) fn is_device(path: &Path) -> bool {
    path.starts_with("/dev") || fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir())
}

/// Refuses to write over an input, into a folder that is one, or two results to one place.
pub(crate) fn check_places(inputs: &[&Path], outputs: &[&Path]) -> Result<(), Failure> {
    let standard_output = PathBuf::from("/dev/stdout");
    let place = |path: &Path| {
        let path = if is_pipe(path) { &standard_output } else { path };
        // A file that is not there yet is known by its folder.
        path.canonicalize().unwrap_or_else(|_| match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) => {
                let folder = if folder == Path::new("") { Path::new(".") } else { folder };
                folder.canonicalize().unwrap_or_else(|_| folder.to_owned()).join(name)
            }
            _ => path.to_owned(),
        })
    };
    // What is wrong with a folder is said when it is read.
    let folders: Vec<(&Path, Folder)> =
        inputs.iter().filter(|p| p.is_dir()).filter_map(|p| Some((*p, Folder::of(p).ok()?))).collect();
    let inputs: Vec<PathBuf> = inputs.iter().filter(|p| !is_pipe(p)).map(|p| place(p)).collect();
    for (k, output) in outputs.iter().enumerate() {
        let target = place(output);
        // Reading and writing one device, such as a terminal, is nobody's loss.
        let is_file = fs::metadata(&target).map_or(true, |m| m.is_file());
        if is_file && inputs.contains(&target) {
            let name = output.display();
            return Err(Failure::Call(format!(
                "{name} is an input and would be overwritten; name another file"
            )));
        }
        for (table, Folder { files, folders }) in &folders {
            let (name, table) = (output.display(), table.display());
            if files.iter().any(|part| place(part) == target) {
                return Err(Failure::Call(format!(
                    "{name} is a part of the table in the folder {table} and would be overwritten; name another file"
                )));
            }
            let within = |folder: &PathBuf| target.parent().is_some_and(|own| own == place(folder));
            if Folder::is_part(&target) && folders.iter().any(within) {
                return Err(Failure::Call(format!(
                    "{name} would be read as a part of the table in the folder {table} from then on; name a file outside of it"
                )));
            }
        }
        let null = Path::new("/dev/null");
        if target != null && outputs[..k].iter().any(|other| place(other) == target) {
            let name = output.display();
            return Err(Failure::Call(format!(
                "two results would go to the same place, {name}; name two files"
            )));
        }
    }
    Ok(())
}
