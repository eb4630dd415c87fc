//! Chromium, driven by scripts of Node with playwright-core.

use crate::{
    node::{Node, node},
    tools::tool,
};

/// Node and Chromium.
#[derive(Clone, Debug)]
pub struct Browser {
    /// Node with its packages.
    pub node: Node,
    /// The path of Chromium.
    pub chromium: String,
}

/// Node and Chromium; `None` if one is missing, which is reported as a skipped test.
pub fn browser() -> Option<Browser> {
    let (Some(_), Some(node)) = (tool("chromium", "chromium"), node()) else { return None };
    let directories = std::env::var_os("PATH")?;
    let path =
        std::env::split_paths(&directories).map(|directory| directory.join("chromium")).find(|path| path.is_file());
    Some(Browser { node, chromium: path?.to_str()?.to_owned() })
}

impl Browser {
    /// Runs a script of `tests/clients` with the path of Chromium, the origin of a server and further arguments;
    /// returns its output.
    ///
    /// # Panics
    ///
    /// If the script fails.
    pub fn run(&self, script: &str, origin: &str, arguments: &[&str]) -> String {
        let arguments: Vec<&str> = [&*self.chromium, origin].into_iter().chain(arguments.iter().copied()).collect();
        self.node.run(script, &arguments)
    }
}
