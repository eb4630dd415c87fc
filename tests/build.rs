//! Extracts the Rust snippets from the documents, so that a test can compile and run them.

#[allow(dead_code, unreachable_pub, reason = "it is a module of the library")]
#[path = "src/readme/blocks.rs"]
mod blocks;

use std::{env, error::Error, fmt::Write, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=../README.md");
    println!("cargo::rerun-if-changed=../docs");
    println!("cargo::rerun-if-changed=src/readme/blocks.rs");
    let mut code = String::new();
    for page in blocks::pages(Path::new(".."))? {
        let blocks = blocks::blocks(&page.text);
        let run = blocks.iter().filter(|block| block.language == "rust" && block.is_run());
        let name = page.name.trim_start_matches("../");
        for (number, block) in run.enumerate() {
            let text = block.text.replace("\nasync fn ", "\npub async fn ");
            writeln!(code, "pub mod {} {{\n{text}}}", blocks::module(name, number + 1))?;
        }
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("readme.rs"), code)?;
    Ok(())
}
