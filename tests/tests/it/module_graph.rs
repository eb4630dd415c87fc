//! The modules of each crate import from each other without cycles.
//!
//! An edge leads from the file that uses an item to the file that defines it; re-exports are followed. Tests are
//! excluded.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use syn::{Item, UseTree, Visibility, visit::Visit};
use zarrd_tests::binary::workspace;

/// A module by its path within the crate; empty for the crate root.
type Module = Vec<String>;

/// The files of a crate.
struct Crate {
    files: BTreeMap<Module, syn::File>,
    /// Re-exports: the module and the name, with the path that they stand for.
    exports: BTreeMap<(Module, String), Vec<String>>,
}

impl Crate {
    fn read(src: &Path) -> Self {
        let mut files = BTreeMap::new();
        read_dir(src, src, &mut files);
        let mut exports = BTreeMap::new();
        for (module, file) in &files {
            for item in &file.items {
                let Item::Use(item) = item else { continue };
                if matches!(item.vis, Visibility::Inherited) {
                    continue;
                }
                for (name, path) in flatten(&item.tree) {
                    exports.insert((module.clone(), name), path);
                }
            }
        }
        Self { files, exports }
    }

    /// The file that defines an item, given its path in a module; `None` for other crates and for items of the module
    /// itself.
    fn target(&self, from: &Module, path: &[String]) -> Option<Module> {
        let mut rest = path;
        let mut module = match rest.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => from.clone(),
            name => {
                let child = [from.as_slice(), &[name.to_owned()]].concat();
                if !self.files.contains_key(&child) {
                    return None;
                }
                from.clone()
            }
        };
        while let Some(first) = rest.first() {
            match first.as_str() {
                "super" => drop(module.pop()),
                "crate" | "self" => {}
                _ => break,
            }
            rest = &rest[1..];
        }
        while let Some(name) = rest.first() {
            let child = [module.as_slice(), std::slice::from_ref(name)].concat();
            if !self.files.contains_key(&child) {
                break;
            }
            module = child;
            rest = &rest[1..];
        }
        if let Some(exported) = rest.first().and_then(|name| self.exports.get(&(module.clone(), name.clone()))) {
            return self.target(&module, exported).or(Some(module));
        }
        Some(module).filter(|module| module != from)
    }

    /// The modules that each module imports from.
    fn edges(&self) -> BTreeMap<Module, BTreeSet<Module>> {
        let edges = |(module, file): (&Module, &syn::File)| {
            let mut paths = Paths::default();
            paths.visit_file(file);
            let targets = paths.0.iter().filter_map(|path| self.target(module, path)).collect();
            (module.clone(), targets)
        };
        self.files.iter().map(edges).collect()
    }
}

fn read_dir(src: &Path, dir: &Path, files: &mut BTreeMap<Module, syn::File>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        if path.is_dir() {
            read_dir(src, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path.strip_prefix(src).unwrap().with_extension("");
            let mut module: Module = relative.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
            if matches!(module.last().unwrap().as_str(), "mod" | "lib" | "main") {
                module.pop();
            }
            files.insert(module, syn::parse_file(&fs::read_to_string(&path).unwrap()).unwrap());
        }
    }
}

/// The paths of a `use`, each with the name that it introduces.
fn flatten(tree: &UseTree) -> Vec<(String, Vec<String>)> {
    let below = |name: &syn::Ident, tree: &UseTree| {
        flatten(tree).into_iter().map(|(as_name, path)| (as_name, [vec![name.to_string()], path].concat())).collect()
    };
    match tree {
        UseTree::Path(path) => below(&path.ident, &path.tree),
        UseTree::Name(name) if name.ident == "self" => vec![("self".to_owned(), Vec::new())],
        UseTree::Name(name) => vec![(name.ident.to_string(), vec![name.ident.to_string()])],
        UseTree::Rename(name) => vec![(name.rename.to_string(), vec![name.ident.to_string()])],
        UseTree::Glob(_) => vec![("*".to_owned(), Vec::new())],
        UseTree::Group(group) => group.items.iter().flat_map(flatten).collect(),
    }
}

/// Collects the paths in a file, except in tests and re-exports.
#[derive(Default)]
struct Paths(Vec<Vec<String>>);

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let is_test = |attribute: &syn::Attribute| attribute.path().is_ident("cfg");
        if !item.attrs.iter().any(is_test) {
            syn::visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if matches!(item.vis, Visibility::Inherited) {
            self.0.extend(flatten(&item.tree).into_iter().map(|(_, path)| path));
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if path.leading_colon.is_none() && matches!(names[0].as_str(), "crate" | "self" | "super") && names.len() > 1 {
            self.0.push(names);
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

/// The modules that can reach a module.
fn reachable(edges: &BTreeMap<Module, BTreeSet<Module>>, from: &Module) -> BTreeSet<Module> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
    while let Some(module) = open.pop() {
        for next in edges.get(&module).into_iter().flatten() {
            if seen.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    seen
}

/// The cycles of a crate: sets of modules that can reach each other.
fn cycles(name: &str) -> BTreeSet<Vec<String>> {
    let krate = Crate::read(&workspace().join("crates").join(name).join("src"));
    let edges = krate.edges();
    let reached: BTreeMap<&Module, BTreeSet<Module>> =
        krate.files.keys().map(|module| (module, reachable(&edges, module))).collect();
    let shown = |module: &Module| if module.is_empty() { "lib".to_owned() } else { module.join("::") };
    let cycle = |module: &&Module| -> Option<Vec<String>> {
        let members = reached[module].iter().filter(|other| reached[other].contains(*module));
        let members: Vec<String> = members.map(shown).collect();
        (!members.is_empty()).then_some(members)
    };
    krate.files.keys().filter_map(|module| cycle(&module)).collect()
}

/// The crates with more than one module.
const CRATES: [&str; 17] = [
    "access",
    "array",
    "cf",
    "compute",
    "client",
    "codec",
    "executor",
    "meta",
    "operations",
    "s3",
    "server",
    "store",
    "store-dir",
    "store-local",
    "store-object",
    "wire",
    "zarrd",
];

#[test]
fn modules_import_without_cycles() {
    for name in CRATES {
        assert_eq!(cycles(name), BTreeSet::new(), "the cycles of {name}");
    }
}
