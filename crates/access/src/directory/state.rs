//! The content of a directory in memory.

use std::{sync::Arc, time::SystemTime};

use crate::{
    credential::{Credential, Kind, Secret},
    denial::{Denial, ReadError},
    id::CredentialId,
    key_ring::KeyRing,
    principal::Principal,
    table::{Table, Valid},
};

/// The content of the directory in memory.
#[derive(Default)]
pub(super) struct State {
    /// Replaced by [`set_ring`](Self::set_ring).
    pub(super) ring: KeyRing,
    pub(super) tokens: Table,
    pub(super) links: Table,
    /// True once a token was made, even if all were revoked since.
    pub(super) had_tokens: bool,
    /// The reason why the directory cannot be read; all credentials are denied then.
    pub(super) failure: Option<Arc<ReadError>>,
}

impl State {
    pub(super) fn table(&self, kind: Kind) -> &Table {
        match kind {
            Kind::Token => &self.tokens,
            Kind::Link => &self.links,
        }
    }

    pub(super) fn table_mut(&mut self, kind: Kind) -> &mut Table {
        match kind {
            Kind::Token => &mut self.tokens,
            Kind::Link => &mut self.links,
        }
    }

    pub(super) fn set_ring(&mut self, ring: KeyRing) {
        self.ring = ring;
        self.tokens.forget_macs();
        self.links.forget_macs();
    }

    pub(super) fn verify(
        &self,
        kind: Kind,
        credential: &Credential<'_>,
        now: SystemTime,
    ) -> Result<&Arc<Principal>, Denial> {
        self.check_readable()?;
        let valid = match self.table(kind).get(credential.id) {
            Ok(valid) => valid,
            Err(denial) => {
                self.ring.verify(kind, credential)?;
                return Err(denial);
            }
        };
        valid.verify(&self.ring, kind, credential)?;
        self.check(kind, valid, now)?;
        Ok(&valid.principal)
    }

    /// Checks that a credential that was verified before is still valid, and grants what it did.
    pub(super) fn confirm(
        &self,
        kind: Kind,
        id: CredentialId,
        principal: &Principal,
        now: SystemTime,
    ) -> Result<(), Denial> {
        self.check_readable()?;
        let valid = self.table(kind).get(id)?;
        self.check(kind, valid, now)?;
        if valid.record.grants == principal.grants { Ok(()) } else { Err(Denial::Revoked) }
    }

    /// The principal and the text of a valid token.
    pub(super) fn secret(&self, id: CredentialId, now: SystemTime) -> Result<(Arc<Principal>, Secret), Denial> {
        self.check_readable()?;
        let valid = self.tokens.get(id)?;
        self.check(Kind::Token, valid, now)?;
        let mac = valid.mac(&self.ring, Kind::Token, &id)?;
        Ok((Arc::clone(&valid.principal), Secret::new(Kind::Token, valid.record.key, id, mac.as_str())))
    }

    fn check_readable(&self) -> Result<(), Denial> {
        match &self.failure {
            Some(source) => Err(Denial::Unavailable { source: Arc::clone(source) }),
            None => Ok(()),
        }
    }

    /// Checks a token, or a share link and its maker.
    pub(super) fn check(&self, kind: Kind, valid: &Valid, now: SystemTime) -> Result<(), Denial> {
        valid.check(&self.ring, now)?;
        match kind {
            Kind::Token => Ok(()),
            Kind::Link => self.check_maker(valid, now),
        }
    }

    /// Checks that the maker of a share link is valid and still has the right that the link shares.
    pub(super) fn check_maker(&self, link: &Valid, now: SystemTime) -> Result<(), Denial> {
        let Some(maker) = link.record.maker else { return Ok(()) };
        let maker = self.tokens.get(maker).map_err(|_| Denial::MakerGone)?;
        maker.check(&self.ring, now).map_err(|_| Denial::MakerGone)?;
        if link.record.grants.is_within(&maker.record.grants) { Ok(()) } else { Err(Denial::MakerGone) }
    }
}
