//! Writing to a pipe, socket or terminal that others read, without waiting for them.

use std::io;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A pipe that can be written takes as much at once (`PIPE_BUF`).
const PIECE: usize = 4096;

/// Writes as much as nobody has to be waited for.
///
/// # Errors
///
/// `EAGAIN` where the rest would wait; `EPIPE` where nobody reads.
pub fn write_without_waiting(to: &impl AsFd, data: &[u8]) -> io::Result<()> {
    for mut piece in data.chunks(PIECE) {
        while !piece.is_empty() {
            let mut asked = [PollFd::new(to.as_fd(), PollFlags::POLLOUT)];
            poll(&mut asked, PollTimeout::ZERO)?;
            let found = asked[0].revents().unwrap_or(PollFlags::empty());
            if found.intersects(PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL) {
                return Err(Errno::EPIPE.into());
            }
            if !found.contains(PollFlags::POLLOUT) {
                return Err(Errno::EAGAIN.into());
            }
            let written = nix::unistd::write(to, piece)?;
            piece = piece.get(written..).unwrap_or_default();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn a_full_pipe_is_not_waited_for_and_one_without_a_reader_is_not_written() {
        let (mut reads, mut writes) = std::io::pipe().unwrap();
        write_without_waiting(&writes, b"a line").unwrap();
        writes.write_all(&[0; (1 << 16) - 6]).unwrap();
        let full = write_without_waiting(&writes, b"another").unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::WouldBlock);
        let mut line = [0; 6];
        reads.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"a line");
        drop(reads);
        let alone = write_without_waiting(&writes, b"another").unwrap_err();
        assert_eq!(alone.kind(), io::ErrorKind::BrokenPipe);
    }
}
