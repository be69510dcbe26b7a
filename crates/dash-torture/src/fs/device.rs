//! The recording block device: a FUSE file system with one file, `image`, that a loop device lies
//! on. Its content is an ordinary file that the worker writes to as well, between two mounts. Every
//! write and flush goes to the [`Log`] before the kernel hears of its success. One thread serves
//! all requests, so the log's order is the order in which they were carried out; a write that is
//! under way when a flush arrives counts as covered by it.
//!
//! The device can be told to fail: see [`Orders`].

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, UNIX_EPOCH};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner,
    OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite, Request,
    WriteFlags,
};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use serde_json::json;

use super::log::Log;
use super::parts::Link;

/// The kernel asks for attributes anew each time: the image changes its size.
const NO_TIME: Duration = Duration::ZERO;
/// How long the device outlives its worker at most.
const LINGERS: Duration = Duration::from_secs(30);
/// The image's inode.
const IMAGE: INodeNo = INodeNo(2);
/// Where the device is mounted in its folder.
pub const POINT: &str = "device";
/// The content of the image.
pub const CONTENT: &str = "content";
const ORDERS: &str = "orders";

/// When the device fails: from so many events in the log on, every write or flush is answered with
/// EIO and does nothing. Kept in a file that the device reads at each request.
#[derive(Debug)]
pub struct Orders(File);

impl Orders {
    /// The orders in a folder; without any at first.
    pub fn open(folder: &Path) -> std::io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(false)
            .open(folder.join(ORDERS))?;
        Ok(Self(file))
    }

    /// Writes fail from one position on, flushes from another; `None`: never.
    pub fn give(&self, writes: Option<u64>, flushes: Option<u64>) -> std::io::Result<()> {
        for (place, order) in [(0, writes), (8, flushes)] {
            self.0.write_all_at(&order.unwrap_or(u64::MAX).to_le_bytes(), place)?;
        }
        Ok(())
    }

    fn fails(&self, place: u64, position: u64) -> bool {
        let mut bytes = [0xff; 8];
        let _none_given_yet = self.0.read_exact_at(&mut bytes, place);
        position >= u64::from_le_bytes(bytes)
    }
}

struct Device {
    content: File,
    log: Mutex<Log>,
    orders: Orders,
    /// How often the image is open.
    held: Arc<AtomicU64>,
}

impl Device {
    fn attributes(&self, inode: INodeNo) -> FileAttr {
        let size = self.content.metadata().map_or(0, |metadata| metadata.len());
        let (kind, perm, nlink) = match inode {
            IMAGE => (FileType::RegularFile, 0o600, 1),
            _ => (FileType::Directory, 0o700, 2),
        };
        FileAttr {
            ino: inode,
            size: if inode == IMAGE { size } else { 0 },
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }

    fn take(&self, place: u64, bytes: &[u8]) -> std::io::Result<()> {
        let mut log = self.log.lock().map_err(|_| std::io::ErrorKind::Other)?;
        if self.orders.fails(0, log.position()?) {
            return Err(std::io::ErrorKind::Other.into());
        }
        log.write(place, bytes)?;
        self.content.write_all_at(bytes, place)
    }

    fn flush_all(&self) -> std::io::Result<()> {
        let mut log = self.log.lock().map_err(|_| std::io::ErrorKind::Other)?;
        if self.orders.fails(8, log.position()?) {
            return Err(std::io::ErrorKind::Other.into());
        }
        log.flush()
    }
}

impl Filesystem for Device {
    fn lookup(&self, _: &Request, _parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if name == "image" {
            reply.entry(&NO_TIME, &self.attributes(IMAGE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&NO_TIME, &self.attributes(inode));
    }

    fn open(&self, _: &Request, _inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.held.fetch_add(1, Ordering::SeqCst);
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        _inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let mut bytes = vec![0; size as usize];
        let mut read = 0;
        while read < bytes.len() {
            match self.content.read_at(&mut bytes[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(_) => return reply.error(Errno::EIO),
            }
        }
        reply.data(&bytes[..read]);
    }

    fn write(
        &self,
        _: &Request,
        _inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.take(offset, data) {
            Ok(()) => reply.written(u32::try_from(data.len()).unwrap_or(u32::MAX)),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    fn fsync(&self, _: &Request, _inode: INodeNo, _: FileHandle, _data: bool, reply: ReplyEmpty) {
        match self.flush_all() {
            Ok(()) => reply.ok(),
            Err(_) => reply.error(Errno::EIO),
        }
    }

    fn release(
        &self,
        _: &Request,
        _inode: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        self.held.fetch_sub(1, Ordering::SeqCst);
        reply.ok();
    }

    // Closing is no flush.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    // The loop device discards and zeroes with it; without it the kernel writes zeroes.
    fn fallocate(
        &self,
        _: &Request,
        _inode: INodeNo,
        _: FileHandle,
        _offset: u64,
        _length: u64,
        _mode: i32,
        reply: ReplyEmpty,
    ) {
        reply.error(Errno::EOPNOTSUPP);
    }
}

/// The part of the device: serves the image until the worker is gone.
pub fn play(mut link: Link, folder: &Path) -> std::io::Result<()> {
    let content = OpenOptions::new().read(true).write(true).open(folder.join(CONTENT))?;
    let held = Arc::new(AtomicU64::new(0));
    let device = Device {
        content,
        log: Mutex::new(Log::open(folder)?),
        orders: Orders::open(folder)?,
        held: held.clone(),
    };
    // The device must not have a part in the worker's namespace: if it were the last to leave it,
    // the kernel would unmount the file system under test from the very process that serves it, and
    // wait for ever. Mounted before, the device stays visible to the worker.
    let session = fuser::Session::new(device, folder.join(POINT), &fuser::Config::default())?;
    unshare(CloneFlags::CLONE_NEWNS)?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    let session = session.spawn()?;
    link.send(&json!("ready"))?;
    while let Ok(Some(_)) = link.receive() {}
    // The worker is gone; the kernel is unmounting, and lets go of the image last.
    let begun = Instant::now();
    while held.load(Ordering::SeqCst) > 0 && begun.elapsed() < LINGERS {
        std::thread::sleep(Duration::from_millis(5));
    }
    // The kernel takes the mount down with this process.
    std::mem::forget(session);
    Ok(())
}
