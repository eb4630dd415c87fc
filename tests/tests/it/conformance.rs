//! The store conformance tests through every layer: client → HTTP → server → embedded store, with either index.

mod http_store {
    use std::sync::Arc;

    use tempfile::TempDir;
    use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
    use zarrd_client::{BaseUrl, HttpStore};
    use zarrd_server::{App, Settings, serve};
    use zarrd_store_local::{IndexKind, LocalStore, Options};
    use zarrd_store_testkit::{Factory, Reopen};

    struct Remote(IndexKind);

    /// A server for a store in a directory.
    struct Served {
        dir: TempDir,
        local: LocalStore,
        stop: oneshot::Sender<()>,
        serving: JoinHandle<()>,
    }

    impl Remote {
        async fn serve(&self, dir: TempDir) -> (HttpStore, Served) {
            let local = LocalStore::open(dir.path(), Options::new(self.0)).await.unwrap();
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let base = BaseUrl::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
            let app = App::new(Arc::new(local.clone()), Settings::default());
            let (stop, stopped) = oneshot::channel();
            let serving = tokio::spawn(async move {
                let stopped = async { stopped.await.unwrap_or_default() };
                serve(listener, app, stopped).await.unwrap();
            });
            (HttpStore::new(base).unwrap(), Served { dir, local, stop, serving })
        }
    }

    impl Factory for Remote {
        type Store = HttpStore;
        type Fixture = Served;

        async fn create(&self) -> (HttpStore, Served) {
            self.serve(tempfile::tempdir().unwrap()).await
        }
    }

    impl Reopen for Remote {
        async fn reopen(&self, store: HttpStore, served: Served) -> (HttpStore, Served) {
            drop(store);
            served.stop.send(()).unwrap();
            served.serving.await.unwrap();
            served.local.close().await.unwrap();
            drop(served.local);
            self.serve(served.dir).await
        }
    }

    mod sled {
        use super::{IndexKind, Remote};

        zarrd_store_testkit::conformance_tests!(Remote(IndexKind::Sled) => readable_writeable_listable, persistent);
    }

    mod redb {
        use super::{IndexKind, Remote};

        zarrd_store_testkit::conformance_tests!(Remote(IndexKind::Redb) => readable_writeable_listable, persistent);
    }
}
