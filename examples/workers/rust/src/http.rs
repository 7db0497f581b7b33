//! One POST per connection, over plain HTTP: the server is on this machine or behind a proxy that speaks TLS.

use crate::json::Json;
use std::io::{Error, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longer than the server lets a claim wait.
const SECONDS: u64 = 60;

pub struct Server {
    /// `host:port`.
    host: String,
    /// Of the path, if the server is mounted in another app.
    prefix: String,
    token: String,
}

impl Server {
    pub fn new(address: &str, token: String) -> Server {
        let address = address.strip_prefix("http://").expect("WINDLASS_SERVER must begin with http://").trim_end_matches('/');
        let (host, prefix) = address.split_at(address.find('/').unwrap_or(address.len()));
        let port = if host.rsplit(']').next().is_some_and(|end| end.contains(':')) { "" } else { ":80" };
        Server { host: format!("{host}{port}"), prefix: prefix.to_string(), token }
    }

    /// The status and the answer; an error if the connection failed, so that it is not known whether the server acted.
    pub fn post(&self, path: &str, body: &Json) -> Result<(u16, Json)> {
        let mut connection = TcpStream::connect(&self.host)?;
        connection.set_read_timeout(Some(Duration::from_secs(SECONDS)))?;
        connection.set_write_timeout(Some(Duration::from_secs(SECONDS)))?;
        let body = body.to_string();
        // 1.0: then no proxy sends the answer in chunks.
        write!(
            connection,
            "POST {}/api/v1{path} HTTP/1.0\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.prefix,
            self.host,
            self.token,
            body.len()
        )?;
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer)?;
        let answer = String::from_utf8(answer).map_err(Error::other)?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(|| Error::other("no answer"))?;
        let status = head.get(9..12).and_then(|digits| digits.parse().ok()).ok_or_else(|| Error::other("no status"))?;
        let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
        if length.is_some_and(|length: usize| body.len() < length) {
            return Err(Error::other("the answer was cut off"));
        }
        Ok((status, if body.is_empty() { Json::Null } else { Json::parse(body).map_err(Error::other)? }))
    }
}
