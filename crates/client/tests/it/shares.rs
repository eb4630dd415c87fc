//! Share links, with the client and a zarrd server.

mod links {
    use std::{
        fs,
        sync::Arc,
        time::{Duration, SystemTime},
    };

    use tempfile::TempDir;
    use zarrd_access::{AccessDirectory, CredentialId, Grants, NewToken};
    use zarrd_client::{BaseUrl, HttpStore, RemoteError, ShareClient, Token};
    use zarrd_server::{AccessPolicy, AnonymousAccess, Settings};
    use zarrd_store::{Key, MemoryStore, Precondition, Prefix, ReadableStore, WriteableStore};

    use crate::test_server::TestServer;

    /// A server whose clients need a token.
    struct ClosedServer {
        server: TestServer,
        directory: Arc<AccessDirectory>,
        dir: TempDir,
    }

    impl ClosedServer {
        async fn start() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let directory = Arc::new(AccessDirectory::open(dir.path()).unwrap());
            let anonymous = AnonymousAccess::Granted(Grants::none());
            let access = AccessPolicy { anonymous, directory: directory.clone().into(), ..AccessPolicy::default() };
            let store = MemoryStore::new();
            for name in ["lab/exp1/k", "lab/k"] {
                store.set(&key(name), name.into(), Precondition::none()).await.unwrap();
            }
            Self { server: TestServer::with(store, Settings { access, ..Settings::default() }).await, directory, dir }
        }

        /// A client with a new token.
        fn client(&self, grant: &str) -> (CredentialId, ShareClient) {
            let grants = Grants::new([grant.parse().unwrap()]).unwrap();
            let new = NewToken { name: "t".to_owned(), grants, expires: None, maker: None };
            let (token, secret) = self.directory.create(new).unwrap();
            let client = ShareClient::builder(self.server.base.clone()).token(Token::parse(secret.expose()).unwrap());
            (token.id, client.build().unwrap())
        }
    }

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    fn prefix(text: &str) -> Prefix {
        Prefix::parse(text).unwrap()
    }

    fn in_an_hour() -> SystemTime {
        SystemTime::now() + Duration::from_secs(3600)
    }

    /// The error with which a client of this URL fails to read a key.
    async fn refusal(url: &str, name: &str) -> RemoteError {
        let store = HttpStore::new(BaseUrl::parse(url).unwrap()).unwrap();
        match store.get(&key(name), None).await.map(drop).unwrap_err() {
            zarrd_store::StoreError::Backend { source, .. } => *source.downcast().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn link_reads_its_prefix_until_it_is_revoked() {
        let server = ClosedServer::start().await;
        let ((id, client), (_, other)) = (server.client("read:lab/"), server.client("read:/"));
        assert_eq!(client.list().await.unwrap(), []);
        let expires = in_an_hour();
        let (share, url) = client.create("for Ada", &prefix("lab/exp1/"), expires).await.unwrap();
        assert_eq!((&*share.name, &*share.prefix), ("for Ada", "lab/exp1/"));
        assert_eq!(share.maker, Some(id.to_string()));
        let info = server.directory.link(share.id.parse().unwrap()).unwrap().unwrap();
        assert!(info.expires <= expires && info.expires > expires - Duration::from_secs(1), "{info:?}");
        let base = server.server.base.to_string();
        assert!(url.starts_with(&format!("{}/s/zarrdlink_", base.trim_end_matches('/'))), "{url}");

        let store = HttpStore::new(BaseUrl::parse(&url).unwrap()).unwrap();
        let value = store.get(&key("lab/exp1/k"), None).await.unwrap().unwrap();
        assert_eq!(value.bytes().await.unwrap(), "lab/exp1/k");
        assert!(matches!(refusal(&url, "lab/k").await, RemoteError::Forbidden { .. }));

        assert_eq!(client.list().await.unwrap(), std::slice::from_ref(&share));
        assert_eq!(other.list().await.unwrap(), []);
        for (client, id) in [(&other, &share.id), (&client, &"0".repeat(32)), (&client, &"a/b".to_owned())] {
            let error = client.revoke(id).await.unwrap_err();
            assert!(matches!(error, RemoteError::Status { status: 404, .. }), "{error:?}");
        }
        client.revoke(&share.id).await.unwrap();
        assert!(matches!(refusal(&url, "lab/exp1/k").await, RemoteError::Unauthorized { .. }));
        assert_eq!(client.list().await.unwrap(), []);
        let error = client.revoke(&share.id).await.unwrap_err();
        assert!(matches!(error, RemoteError::Status { status: 404, .. }), "{error:?}");
    }

    #[tokio::test]
    async fn link_beyond_the_rights_of_its_maker_is_refused() {
        let server = ClosedServer::start().await;
        let (id, client) = server.client("read:lab/");
        for outside in ["", "other/", "la/"] {
            let error = client.create("", &prefix(outside), in_an_hour()).await.unwrap_err();
            assert!(matches!(error, RemoteError::Forbidden { .. }), "{outside}: {error:?}");
        }
        let error = client.create("", &prefix("lab/"), SystemTime::UNIX_EPOCH).await.unwrap_err();
        assert!(
            matches!(&error, RemoteError::Status { status: 400, detail, .. } if detail.contains("not in the future")),
            "{error:?}"
        );
        let nobody = ShareClient::new(server.server.base.clone()).unwrap();
        server.directory.revoke(id).unwrap();
        for client in [client, nobody] {
            let created = client.create("", &prefix("lab/"), in_an_hour()).await.map(drop);
            for result in [created, client.list().await.map(drop), client.revoke(&"0".repeat(32)).await] {
                assert!(matches!(result, Err(RemoteError::Unauthorized { .. })), "{result:?}");
            }
        }
        assert_eq!(server.directory.links_after(None, 1, |_| true).unwrap(), []);
    }

    #[tokio::test]
    async fn links_of_several_pages_are_listed() {
        let server = ClosedServer::start().await;
        let (_, client) = server.client("read:lab/");
        let (share, _) = client.create("", &prefix("lab/"), in_an_hour()).await.unwrap();
        // Copies of its file, since creating so many takes long.
        let links = server.dir.path().join("links");
        let record = fs::read_to_string(links.join(format!("{}.json", share.id))).unwrap();
        for number in 1..2500 {
            let id = format!("{number:032x}");
            fs::write(links.join(format!("{id}.json")), record.replace(&share.id, &id)).unwrap();
        }
        server.directory.reload_if_changed();
        let listed = client.list().await.unwrap();
        assert!(listed.len() == 2500 && listed.is_sorted_by_key(|share| share.id.clone()));
        assert!(listed.contains(&share));
    }
}
