use crate::failure::Failure;
use covary::io::Error;
use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Where a result goes. A file is written beside its target and takes its place only in
/// [`finish`](Self::finish), so that a failure leaves the old one as it was.
pub(crate) enum Output {
    Stdout,
    /// A device or a named pipe, which must not be replaced.
    Device(PathBuf),
    File {
        target: PathBuf,
        beside: NamedTempFile,
    },
}

impl Output {
    /// Opens the file at `path`; none, or `-`, is standard output.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path.filter(|p| *p != Path::new("-")) else {
            return Ok(Self::Stdout);
        };
        let failed = |e| Failure::work(&path.display().to_string(), Error::Write(e));
        // Through a symbolic link the file it points to is replaced, not the link.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let present = fs::metadata(&target).ok();
        match &present {
            Some(m) if m.is_dir() => return Err(failed(ErrorKind::IsADirectory.into())),
            Some(m) if !m.is_file() => return Ok(Self::Device(target)),
            _ => {}
        }
        let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".covary-");
        let permissions = present.map(|m| m.permissions());
        if let Some(p) = permissions.clone().or_else(ordinary_permissions) {
            builder.permissions(p);
        }
        let beside = builder.tempfile_in(folder).map_err(failed)?;
        if let Some(p) = permissions {
            // The mask of the process narrows what the builder asked for.
            fs::set_permissions(beside.path(), p).map_err(failed)?;
        }
        Ok(Self::File { target, beside })
    }

    /// Runs `write` on the destination. That nobody reads a pipe to its end is success.
    pub(crate) fn write(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), Error>,
    ) -> Result<(), Failure> {
        let outcome = match self {
            Self::Stdout => write(&mut BufWriter::new(std::io::stdout().lock())),
            Self::Device(path) => File::options()
                .write(true)
                .open(path)
                .map_err(Error::Write)
                .and_then(|file| write(&mut BufWriter::new(file))),
            Self::File { beside, .. } => write(&mut BufWriter::new(beside)),
        };
        match (&self, outcome) {
            (_, Ok(())) => Ok(()),
            (Self::Stdout | Self::Device(_), Err(Error::Write(e))) if e.kind() == ErrorKind::BrokenPipe => {
                Ok(())
            }
            (_, Err(e)) => Err(Failure::work(&self.name(), e)),
        }
    }

    /// Puts a written file in its place.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        let name = self.name();
        match self {
            Self::Stdout | Self::Device(_) => Ok(()),
            Self::File { target, beside } => {
                beside.persist(target).map(|_| ()).map_err(|e| Failure::work(&name, Error::Write(e.error)))
            }
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Stdout => "standard output".to_owned(),
            Self::Device(path) | Self::File { target: path, .. } => path.display().to_string(),
        }
    }
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
