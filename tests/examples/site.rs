//! The web site of the demonstrations: says hello to everybody, on a port it prints, until its input ends.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

fn main() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?.port());
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || answer(client));
        }
    });
    // Whoever started it holds the other end: nothing is left behind when it goes.
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

fn answer(mut client: TcpStream) -> io::Result<()> {
    let mut request = [0; 4096];
    let _ = client.read(&mut request)?;
    let text = "hello from the one host that is allowed\n";
    write!(client, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}", text.len())
}
