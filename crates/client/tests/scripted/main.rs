//! The client against a server that does what a script says: answers that break off, lie, or never come.

// What is marked so may panic like the tests that it helps.
#[cfg(test)]
mod changing;
#[cfg(test)]
mod elements;
#[cfg(test)]
mod reading;
#[cfg(test)]
mod server;
#[cfg(test)]
mod whom;
#[cfg(test)]
mod writing;
