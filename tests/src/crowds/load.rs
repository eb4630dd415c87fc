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

use super::kinds::{Behavior, Crowd, Kind};

/// A separate process that acts as the crowd; killed on drop.
#[derive(Debug)]
pub(super) struct Load(Child);

/// Acts as the crowd until `is_over`.
pub fn run_crowd(crowd: Crowd, clients: usize, address: SocketAddr, is_over: impl Fn() -> bool) {
    allow_connections(clients as u64 + 200);
    let request = |number| crowd.kind.request(number);
    let mut connections: Vec<Option<TcpStream>> =
        (0..clients).take_while(|_| !is_over()).map(|number| connect_client(address, &request(number))).collect();
    while !is_over() {
        for (number, connection) in connections.iter_mut().enumerate() {
            if is_over() {
                break;
            }
            if crowd.behavior != Behavior::Holds && is_done(crowd.behavior, connection.as_mut()) {
                *connection = connect_client(address, &request(number));
            }
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// The statuses of the responses to `clients` simultaneous clients without a crowd, each `None` if it waits for no response.
pub(super) fn responses_to(clients: usize, crowd: Crowd, address: SocketAddr) -> Vec<Option<u16>> {
    let client = |number| move || response_to(number, crowd, address);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..clients).map(|number| scope.spawn(client(number))).collect();
        clients.into_iter().map(|client| client.join().expect("a client ends")).collect()
    })
}

/// The status of the response to client `number`.
fn response_to(number: usize, crowd: Crowd, address: SocketAddr) -> Option<u16> {
    if matches!(crowd.kind, Kind::Silent | Kind::Heads | Kind::Uploads) {
        return None;
    }
    let mut connection = TcpStream::connect(address).ok()?;
    connection.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    connection.write_all(&crowd.kind.request(number)).ok()?;
    let mut line = [0; 12];
    connection.read_exact(&mut line).ok()?;
    str::from_utf8(&line).ok()?.rsplit_once(' ')?.1.parse().ok()
}

/// True if the client must be replaced.
fn is_done(behavior: Behavior, connection: Option<&mut TcpStream>) -> bool {
    let Some(connection) = connection else { return true };
    match behavior {
        Behavior::Holds => false,
        // Reads available bytes without waiting.
        Behavior::Slow => matches!(connection.read(&mut [0; 64]), Ok(0)),
        Behavior::Leaves => {
            // The peer may have closed the connection.
            let _ = connection.shutdown(Shutdown::Both);
            true
        }
        Behavior::Repeats => {
            let (mut some, mut came) = (vec![0; 64 << 10], false);
            loop {
                match connection.read(&mut some) {
                    Ok(0) => return true,
                    Ok(_) => came = true,
                    // Everything available was read: the response, or a sufficient part of it.
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return came,
                    Err(_) => return true,
                }
            }
        }
    }
}

/// Connects one client, unless it is rejected at once.
fn connect_client(address: SocketAddr, request: &[u8]) -> Option<TcpStream> {
    let mut connection = TcpStream::connect(address).ok()?;
    connection.set_write_timeout(Some(Duration::from_millis(500))).ok()?;
    // The server may have responded without reading the whole request.
    let _ = connection.write_all(request);
    connection.set_nonblocking(true).ok()?;
    Some(connection)
}

/// Raises the descriptor limit of this process; the server has its own limit.
fn allow_connections(most: u64) {
    let files = getrlimit(Resource::Nofile);
    if files.current.is_none_or(|current| current >= most) {
        return;
    }
    assert!(files.maximum.is_none_or(|maximum| maximum >= most), "{most} files may not be open here (ulimit -Hn)");
    setrlimit(Resource::Nofile, Rlimit { current: Some(most), ..files }).expect("the limit can be raised");
}

impl Load {
    /// Starts the command `crowds` as the crowd, with the lowest priority.
    pub(super) fn start(program: &Path, crowd: Crowd, clients: usize, address: SocketAddr) -> Self {
        let mut command = Command::new("nice");
        command.args(["-n", "19"]).arg(program).args([
            "crowds",
            "--load",
            &crowd.to_string(),
            "--at",
            &address.to_string(),
        ]);
        command.args(["--clients", &clients.to_string()]).stdin(Stdio::null());
        Self(command.spawn().expect("nice is installed"))
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
