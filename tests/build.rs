//! Extracts the Rust snippets from the README, so that a test can compile and run them.

#[allow(dead_code, unreachable_pub, reason = "it is a module of the library")]
#[path = "src/readme/blocks.rs"]
mod blocks;

use std::{env, error::Error, fmt::Write, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    let readme = Path::new("../README.md");
    println!("cargo::rerun-if-changed={}", readme.display());
    println!("cargo::rerun-if-changed=src/readme/blocks.rs");
    let mut code = String::new();
    let cookbook = blocks::blocks(&fs::read_to_string(readme)?, "Cookbook");
    for (number, block) in cookbook.iter().filter(|block| block.language == "rust").enumerate() {
        let text = block.text.replace("\nasync fn ", "\npub async fn ");
        writeln!(code, "pub mod snippet_{} {{\n{text}}}", number + 1)?;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("readme.rs"), code)?;
    Ok(())
}
