//! Resolves and probes the targets before the load starts.

use super::settings::Common;
use kvant_base::{Error, Result};
use kvant_env::host;
use kvant_load::{LoadConfig, Target};

/// Resolves the targets, checks that each accepts connections (and TLS, if its URL says so), and
/// reads the CA certificates.
pub(super) fn connect(common: &Common) -> Result<LoadConfig> {
    let read = |file| host::read_text(file).map_err(|error| Error::io("read", file, error));
    let ca_pem = common.ca_file.as_deref().map(read).transpose()?.map(String::into_bytes);
    let timeout = common.config.timeout;
    let connect = |target: &Target| {
        let target = target.clone().resolve()?.reach(timeout)?;
        target.shake_hands(ca_pem.as_deref(), timeout)?;
        Ok(target)
    };
    let targets = common.config.targets.iter().map(connect).collect::<Result<_>>()?;
    Ok(LoadConfig { targets, ca_pem, ..common.config.clone() })
}
