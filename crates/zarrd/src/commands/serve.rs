use crate::{config::ServeConfig, exit::Failure};
pub(super) async fn run(_config: ServeConfig) -> Result<(), Failure> {
    Ok(())
}
