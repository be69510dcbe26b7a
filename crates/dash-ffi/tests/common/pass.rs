//! The VFS itself: each method notes its call, fails if the probe says so, and asks the host.

use super::{Fault, Probe, probe};
use core::ffi::CStr;
use dash_ffi::{
    AccessCheck, Code, DeviceCharacteristics, Door, Error, File, FileControl, FileKind, FileName,
    FullPathname, Handled, HostFile, HostVfs, LockLevel, OpenFlags, Opened, PagePointer, Pragma,
    Result, ShmLock, ShmMapping, SyncFlags, Vfs,
};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub struct PassVfs;

impl Vfs for PassVfs {
    fn name(&self) -> &'static CStr {
        c"pass"
    }

    fn open(&self, host: &HostVfs, name: FileName<'_>, flags: OpenFlags) -> Result<Opened> {
        let probe = name.path().map(probe).unwrap_or_default();
        let kind = flags.kind();
        probe.note(format!("xOpen {kind:?}"));
        for (key, value) in name.parameters() {
            probe.note(format!("parameter {kind:?} {}={}", key.display(), value.display()));
        }
        probe.check("xOpen")?;
        let own = name.uri_parameter("own").is_some();
        let (host, flags) = match name.path().filter(|_| own) {
            Some(path) => host.open_path(path, flags)?,
            None => host.open(name, flags)?,
        };
        let shared_memory = name.uri_parameter("shm") != Some(OsStr::new("no"));
        let path = name.path().map(Path::to_path_buf).unwrap_or_default();
        Ok(Opened { file: Box::new(PassFile { host, probe, path, kind, shared_memory }), flags })
    }

    fn delete(&self, host: &HostVfs, path: &Path, sync_dir: bool) -> Result<()> {
        let probe = probe(path);
        probe.note(format!("xDelete sync_dir={sync_dir}"));
        probe.check("xDelete")?;
        host.delete(path, sync_dir)
    }

    fn access(&self, host: &HostVfs, path: &Path, check: AccessCheck) -> Result<bool> {
        probe(path).check("xAccess")?;
        host.access(path, check)
    }

    fn full_pathname(&self, host: &HostVfs, path: &Path) -> Result<FullPathname> {
        host.full_pathname(path)
    }
}

pub struct PassFile {
    pub host: HostFile,
    pub probe: Arc<Probe>,
    path: PathBuf,
    kind: Option<FileKind>,
    shared_memory: bool,
}

impl PassFile {
    fn call(&self, call: &str, detail: impl std::fmt::Debug) -> Result<()> {
        self.probe.note(format!("{call} {detail:?}"));
        self.probe.check(call)
    }

    /// Whether the connection behind the file writes another one, too, if it can be asked.
    fn note_others(&self) {
        if !matches!(self.kind, Some(FileKind::MainDb | FileKind::Wal)) {
            return;
        }
        let own = self.path.to_string_lossy();
        let own = Path::new(own.strip_suffix("-wal").unwrap_or(&own));
        let kept = self.probe.kept.lock().unwrap();
        let others = kept.as_ref().and_then(|kept| {
            kept.visit(|connection| connection.files_written().iter().any(|file| file != own))
        });
        self.probe.note(format!("others {others:?}"));
    }

    /// `PRAGMA pass_run=…`: statements, `%` for the schema.
    fn run(&self, mut pragma: Pragma<'_>) -> Result<Handled> {
        let sql = pragma.value().unwrap_or_default();
        match pragma.ran() {
            None if pragma.run_first(|schema| sql.replace('%', schema)) => {}
            None => return Err(Error::new(Code::ERROR, "whose connection?")),
            Some(outcome) => {
                outcome?;
                pragma.answer("ran");
            }
        }
        Ok(Handled::Yes)
    }
}

impl File for PassFile {
    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.call("xRead", offset)?;
        let read = self.host.read(buffer, offset)?;
        Ok(match self.probe.fault("xRead") {
            Some(Fault::Claim(claim)) => claim,
            _ => read,
        })
    }

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.call("xWrite", offset)?;
        self.host.write(data, offset)
    }

    fn truncate(&mut self, size: u64) -> Result<()> {
        self.call("xTruncate", size)?;
        self.host.truncate(size)
    }

    fn sync(&mut self, flags: SyncFlags) -> Result<()> {
        self.call("xSync", flags)?;
        self.note_others();
        self.host.sync(flags)
    }

    fn size(&mut self) -> Result<u64> {
        self.call("xFileSize", ())?;
        self.host.size()
    }

    fn lock(&mut self, level: LockLevel) -> Result<()> {
        self.call("xLock", level)?;
        if let Some(Fault::AskBusyHandler) = self.probe.fault("xLock") {
            let busy = self.probe.busy.lock().unwrap();
            while busy.as_ref().unwrap().call() {}
        }
        self.host.lock(level)
    }

    fn unlock(&mut self, level: LockLevel) -> Result<()> {
        self.call("xUnlock", level)?;
        self.host.unlock(level)
    }

    fn check_reserved_lock(&mut self) -> Result<bool> {
        self.call("xCheckReservedLock", ())?;
        self.host.check_reserved_lock()
    }

    fn file_control(&mut self, control: FileControl<'_>) -> Result<Handled> {
        self.probe.note(format!("xFileControl {control:?}"));
        match control {
            FileControl::CommitPhaseTwo => self.probe.check("COMMIT_PHASETWO")?,
            FileControl::BusyHandler(handler) => {
                *self.probe.busy.lock().unwrap() = Some(handler);
                return Ok(Handled::Yes);
            }
            FileControl::Pragma(mut pragma) if pragma.name() == "pass_echo" => {
                self.probe.check("pass_echo")?;
                if let Some(value) = pragma.value() {
                    pragma.answer("replaced");
                    pragma.answer(value);
                }
                return Ok(Handled::Yes);
            }
            FileControl::Pragma(pragma) if pragma.name() == "pass_run" => return self.run(pragma),
            FileControl::Pragma(pragma) if pragma.name() == "pass_shm" => {
                self.shared_memory = pragma.value() == Some("on");
                return Ok(Handled::Yes);
            }
            FileControl::Pdb(connection) => {
                *self.probe.kept.lock().unwrap() = Some(connection.keep());
                return Ok(Handled::Yes);
            }
            control => return self.host.file_control(control),
        }
        Ok(Handled::No)
    }

    fn sector_size(&mut self) -> u32 {
        self.host.sector_size()
    }

    fn device_characteristics(&mut self) -> DeviceCharacteristics {
        self.host.device_characteristics()
    }

    fn has_shared_memory(&self) -> bool {
        self.shared_memory && self.host.has_shared_memory()
    }

    fn shm_map(&mut self, region: usize, size: usize, extend: bool) -> Result<ShmMapping> {
        self.call("xShmMap", region)?;
        self.host.shm_map(region, size, extend)
    }

    fn shm_lock(&mut self, slot: usize, count: usize, lock: ShmLock) -> Result<()> {
        self.call("xShmLock", lock)?;
        self.host.shm_lock(slot, count, lock)
    }

    fn shm_barrier(&mut self) {
        self.host.shm_barrier();
    }

    fn shm_unmap(&mut self, delete: bool) -> Result<()> {
        self.call("xShmUnmap", delete)?;
        self.host.shm_unmap(delete)
    }

    fn fetch(&mut self, offset: u64, amount: usize) -> Result<Option<PagePointer>> {
        let page = self.host.fetch(offset, amount)?;
        self.call("xFetch", page.is_some())?;
        Ok(page)
    }

    fn unfetch(&mut self, offset: u64, page: Option<PagePointer>) -> Result<()> {
        self.call("xUnfetch", page.is_some())?;
        self.host.unfetch(offset, page)
    }

    /// A log is behind the door of its database.
    fn door(&self) -> Option<Door> {
        let kept = self.probe.kept.lock().unwrap();
        kept.as_ref().filter(|_| self.kind == Some(FileKind::Wal)).map(|kept| kept.door())
    }

    fn close(self: Box<Self>) -> Result<()> {
        self.call("xClose", ())?;
        Box::new(self.host).close()
    }
}
