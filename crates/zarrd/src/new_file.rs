//! Files that are written from streams.
//!
//! The bytes of a small file go to the blocking pool in one job, with its creation and renaming: with a job for each step,
//! waking threads takes more of the processor than the file.

use std::{
    fs::File,
    io::{self, Write},
    path::PathBuf,
};

use bytes::Bytes;

/// The number of bytes up to which pieces of a file wait to be written together.
const MAX_WAITING: usize = 256 << 10;

/// A file that is being written. It is created with its first bytes, in place of any other.
#[derive(Debug)]
pub(crate) struct NewFile {
    path: PathBuf,
    file: Option<File>,
    waiting: Vec<Bytes>,
    /// The number of waiting bytes.
    len: usize,
}

impl NewFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, file: None, waiting: Vec::new(), len: 0 }
    }

    /// Appends bytes, which are written now or later.
    pub(crate) async fn push(&mut self, bytes: Bytes) -> io::Result<()> {
        self.len = self.len.saturating_add(bytes.len());
        self.waiting.push(bytes);
        if self.len < MAX_WAITING {
            return Ok(());
        }
        let mut written = std::mem::replace(self, Self::new(PathBuf::new()));
        *self = blocking(move || written.write().map(|()| written)).await?;
        Ok(())
    }

    /// Writes what is left, begins to write all of it back to the disk, and then places the file: renames it, for example.
    ///
    /// A command that writes many files would otherwise leave gigabytes to the sync at its end, for which every other sync
    /// of the file system waits, such as those of a server. File systems without it go on as usual.
    pub(crate) async fn finish<T: Send + 'static>(
        mut self,
        place: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        blocking(move || {
            self.write()?;
            if let Some(file) = &self.file {
                let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed);
            }
            drop(self);
            place()
        })
        .await
    }

    fn write(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(File::create(&self.path)?),
        };
        self.waiting.iter().try_for_each(|bytes| file.write_all(bytes))?;
        self.waiting.clear();
        self.len = 0;
        Ok(())
    }
}

/// Runs a job on the blocking pool.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    zarrd_executor::spawn_blocking(work).await.unwrap_or_else(|error| Err(io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[tokio::test]
    async fn file_has_all_pieces_and_is_created_with_the_last_of_few() {
        let dir = tempfile::tempdir().unwrap();
        for lengths in [vec![], vec![0], vec![3, 4], vec![MAX_WAITING], vec![MAX_WAITING - 1, 1, 5], vec![1; 40]] {
            let (path, target) = (dir.path().join("partial"), dir.path().join("target"));
            fs::write(&path, "what another one left there, which is longer").unwrap();
            let mut file = NewFile::new(path.clone());
            let mut expected = Vec::new();
            for (number, len) in lengths.iter().enumerate() {
                let bytes = vec![number as u8; *len];
                expected.extend_from_slice(&bytes);
                file.push(bytes.into()).await.unwrap();
            }
            let renamed = target.clone();
            file.finish(move || fs::rename(path, renamed)).await.unwrap();
            assert_eq!(fs::read(&target).unwrap(), expected, "{lengths:?}");
        }
    }

    #[tokio::test]
    async fn file_that_cannot_be_written_is_not_placed() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = NewFile::new(dir.path().join("missing/file"));
        file.push("abc".into()).await.unwrap();
        let placed = file.finish(|| -> io::Result<()> { panic!("it is placed") }).await;
        assert_eq!(placed.unwrap_err().kind(), io::ErrorKind::NotFound);
        let mut file = NewFile::new(dir.path().join("missing/file"));
        assert!(file.push(vec![0; MAX_WAITING].into()).await.is_err());
    }
}
