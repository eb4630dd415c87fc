//! The clients of a crowd.

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::kinds::{Crowd, Kind, Manner};

/// A process of its own that is a crowd; it goes when this is dropped.
#[derive(Debug)]
pub(super) struct Load(Child);

/// Is a crowd until `over`.
pub fn gather(crowd: Crowd, clients: usize, address: SocketAddr, over: impl Fn() -> bool) {
    allow_connections(clients as u64 + 200);
    let request = |number| crowd.kind.request(number);
    let mut connections: Vec<Option<TcpStream>> =
        (0..clients).take_while(|_| !over()).map(|number| approach(address, &request(number))).collect();
    while !over() {
        for (number, connection) in connections.iter_mut().enumerate() {
            if over() {
                break;
            }
            if crowd.manner != Manner::Holds && is_done(crowd.manner, connection.as_mut()) {
                *connection = approach(address, &request(number));
            }
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// The status that a client is answered with while there is no crowd.
pub(super) fn alone(crowd: Crowd, address: SocketAddr) -> Option<u16> {
    if matches!(crowd.kind, Kind::Silent | Kind::Heads | Kind::Uploads) {
        return None;
    }
    let mut connection = TcpStream::connect(address).ok()?;
    connection.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    connection.write_all(&crowd.kind.request(0)).ok()?;
    let mut line = [0; 12];
    connection.read_exact(&mut line).ok()?;
    str::from_utf8(&line).ok()?.rsplit_once(' ')?.1.parse().ok()
}

/// Whether a client is to come anew.
fn is_done(manner: Manner, connection: Option<&mut TcpStream>) -> bool {
    let Some(connection) = connection else { return true };
    match manner {
        Manner::Holds => false,
        // What is there is taken; where nothing is, nobody waits.
        Manner::Slow => matches!(connection.read(&mut [0; 64]), Ok(0)),
        Manner::Leaves => {
            // It may be gone already.
            let _ = connection.shutdown(Shutdown::Both);
            true
        }
        Manner::Repeats => {
            let (mut some, mut came) = (vec![0; 64 << 10], false);
            loop {
                match connection.read(&mut some) {
                    Ok(0) => return true,
                    Ok(_) => came = true,
                    // All that is there was read: that was the answer, or as much of it as is wanted.
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return came,
                    Err(_) => return true,
                }
            }
        }
    }
}

/// One client, unless it is turned away at once.
fn approach(address: SocketAddr, request: &[u8]) -> Option<TcpStream> {
    let mut connection = TcpStream::connect(address).ok()?;
    connection.set_write_timeout(Some(Duration::from_millis(500))).ok()?;
    // The server may have answered without reading to the end.
    let _ = connection.write_all(request);
    connection.set_nonblocking(true).ok()?;
    Some(connection)
}

/// Lets this process have so many connections; the server has a limit of its own.
fn allow_connections(most: u64) {
    let files = getrlimit(Resource::Nofile);
    if files.current.is_none_or(|current| current >= most) {
        return;
    }
    assert!(files.maximum.is_none_or(|maximum| maximum >= most), "{most} files may not be open here (ulimit -Hn)");
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..files }).expect("the limit can be raised");
}

impl Load {
    /// Starts the command `crowds` as a crowd, which gives way to all other processes.
    pub(super) fn start(program: &Path, crowd: Crowd, clients: usize, address: SocketAddr) -> Self {
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(program).args(["--load", &crowd.to_string(), "--at", &address.to_string()]);
        command.args(["--clients", &clients.to_string()]).stdin(Stdio::null());
        Self(command.spawn().expect("nice is there"))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
