//! What a directory has of the form of a store, before one is opened in it.

use std::{ffi::OsStr, fs, io, path::Path};

/// The files of a store, and of one that is being created.
const STORE: [&str; 2] = ["zarrd.json", "making"];
/// Other files of a store.
const FILES: [&str; 7] = ["ballast", "clean-shutdown", "generation", "incomplete", "lock", "scrub", "zarrd.json.copy"];
/// The directories of a store, and that of its tokens.
const DIRECTORIES: [&str; 4] = ["access", "index", "log", "values"];
/// The directories of an access directory.
const ACCESS: [&str; 3] = ["keys", "links", "tokens"];
/// The documents of Zarr, by which a directory of one of these names is a node.
const DOCUMENTS: [&str; 4] = [".zarray", ".zattrs", ".zgroup", "zarr.json"];

/// What a directory has of the form of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryForm {
    /// It does not exist, or is empty.
    Empty,
    /// It is a store, whether it can be opened or not.
    Store,
    /// It has a file or directory of the name and form that one of a store or of an access directory has, and is no
    /// store: what remains of a damaged one, or an access directory.
    Part(String),
    /// It has files of other programs.
    Foreign,
}

impl DirectoryForm {
    /// Looks at the entries of a directory.
    pub fn of(directory: &Path) -> io::Result<Self> {
        let entries = match fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::Empty),
            entries => entries?,
        };
        if STORE.iter().any(|name| is_file(&directory.join(name))) {
            return Ok(Self::Store);
        }
        let mut form = Self::Empty;
        for entry in entries {
            let name = entry?.file_name();
            match part(directory, &name) {
                Some(name) => return Ok(Self::Part(name.to_owned())),
                None => form = Self::Foreign,
            }
        }
        Ok(form)
    }
}

/// The name of an entry if it has the form of one of a store or of an access directory.
fn part<'n>(directory: &Path, name: &'n OsStr) -> Option<&'n str> {
    let (name, path) = (name.to_str()?, directory.join(name));
    let is_part = match name {
        name if FILES.contains(&name) => is_file(&path),
        name if DIRECTORIES.contains(&name) => path.is_dir() && !is_node(&path),
        name if ACCESS.contains(&name) => ACCESS.iter().all(|name| directory.join(name).is_dir()),
        _ => false,
    };
    is_part.then_some(name)
}

fn is_node(directory: &Path) -> bool {
    DOCUMENTS.iter().any(|name| is_file(&directory.join(name)))
}

fn is_file(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_store_are_known_by_name_and_form() {
        let dir = tempfile::tempdir().unwrap();
        let form = |files: &[&str]| {
            let root = dir.path().join(files.join("+").replace('/', "-"));
            for file in files {
                let path = root.join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            DirectoryForm::of(&root).unwrap()
        };
        let part = |name: &str| DirectoryForm::Part(name.to_owned());
        assert_eq!(form(&[]), DirectoryForm::Empty);
        for files in [&["zarrd.json", "values/1"][..], &["making"], &["a.txt", "zarrd.json"]] {
            assert_eq!(form(files), DirectoryForm::Store, "{files:?}");
        }
        for (files, name) in [
            (&["values/00/1"][..], "values"),
            (&["log/1"], "log"),
            (&["access/keys/1.json", "a.txt"], "access"),
            (&["lock"], "lock"),
            (&["index/db"], "index"),
        ] {
            assert_eq!(form(files), part(name), "{files:?}");
        }
        assert!(matches!(form(&["keys/1.json", "tokens/a", "links/a"]), DirectoryForm::Part(_)));
        for files in [
            &["zarr.json"][..],
            &["values/zarr.json", "index/.zarray", "log/.zgroup"],
            &["keys/1.json", "tokens/a"],
            &["era.zarr/values/0", "notes.txt"],
            &["lock/zarr.json"],
        ] {
            assert_eq!(form(files), DirectoryForm::Foreign, "{files:?}");
        }
        assert!(DirectoryForm::of(&dir.path().join("making/making")).is_err());
    }
}
