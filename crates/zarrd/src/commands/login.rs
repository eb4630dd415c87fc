//! `zarrd login` and `zarrd logout`: the tokens with which this user's commands authenticate to servers.

use std::io::{self, IsTerminal, Read};

use zarrd_client::BaseUrl;

use crate::{
    config::{LoginError, Logins},
    error::Error,
    ui,
};

/// The maximum size of the input in bytes.
const MAX_INPUT_BYTES: u64 = 4096;

/// Stores a token, which is asked for on a terminal, or else read from stdin.
pub(super) fn login(server: &BaseUrl) -> Result<(), Error> {
    let logins = Logins::locate()?;
    let token = read(&server.origin()).map_err(LoginError::Input)?;
    logins.add(server, token.trim())?;
    ui::note(format_args!("the token for {} is stored in {}", server.origin(), logins.path().display()));
    Ok(())
}

/// Removes the token of a server.
pub(super) fn logout(server: &BaseUrl) -> Result<(), Error> {
    let logins = Logins::locate()?;
    logins.remove(server)?;
    ui::note(format_args!("the token for {} is removed from {}", server.origin(), logins.path().display()));
    Ok(())
}

fn read(origin: &str) -> io::Result<String> {
    if io::stdin().is_terminal() {
        return rpassword::prompt_password(format!("Token for {origin}: "));
    }
    let mut text = String::new();
    io::stdin().lock().take(MAX_INPUT_BYTES).read_to_string(&mut text)?;
    Ok(text)
}
