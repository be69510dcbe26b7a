//! Methods of [`File`](dash_ffi::File) that another file answers, which is in a field.

/// `delegate!([file] read size)` writes `read` and `size`, which ask `self.file`.
macro_rules! delegate {
    (read $of:tt) => {
        delegate!($of read(buffer: &mut [u8], offset: u64) -> Result<usize>);
    };
    (write $of:tt) => { delegate!($of write(data: &[u8], offset: u64) -> Result<()>); };
    (truncate $of:tt) => { delegate!($of truncate(size: u64) -> Result<()>); };
    (sync $of:tt) => { delegate!($of sync(flags: dash_ffi::SyncFlags) -> Result<()>); };
    (size $of:tt) => { delegate!($of size() -> Result<u64>); };
    (lock $of:tt) => { delegate!($of lock(level: dash_ffi::LockLevel) -> Result<()>); };
    (unlock $of:tt) => {
        delegate!($of unlock(level: dash_ffi::LockLevel) -> Result<()>);
    };
    (check_reserved_lock $of:tt) => {
        delegate!($of check_reserved_lock() -> Result<bool>);
    };
    (file_control $of:tt) => {
        delegate!($of file_control(control: dash_ffi::FileControl<'_>) -> Result<dash_ffi::Handled>);
    };
    (sector_size $of:tt) => { delegate!($of sector_size() -> u32); };
    (device_characteristics $of:tt) => {
        delegate!($of device_characteristics() -> dash_ffi::DeviceCharacteristics);
    };
    (shm_map $of:tt) => {
        delegate!($of shm_map(region: usize, size: usize, extend: bool) -> Result<dash_ffi::ShmMapping>);
    };
    (shm_lock $of:tt) => {
        delegate!($of shm_lock(slot: usize, count: usize, lock: dash_ffi::ShmLock) -> Result<()>);
    };
    (shm_barrier $of:tt) => { delegate!($of shm_barrier() -> ()); };
    (shm_unmap $of:tt) => { delegate!($of shm_unmap(delete: bool) -> Result<()>); };
    (fetch $of:tt) => {
        delegate!($of fetch(offset: u64, amount: usize) -> Result<Option<dash_ffi::PagePointer>>);
    };
    (unfetch $of:tt) => {
        delegate!($of unfetch(offset: u64, page: Option<dash_ffi::PagePointer>) -> Result<()>);
    };
    ($of:tt $($method:ident)+) => {
        $(delegate!($method $of);)+
    };
    ([$($of:tt)+] $name:ident($($argument:ident: $type:ty),*) -> $answer:ty) => {
        fn $name(&mut self $(, $argument: $type)*) -> $answer {
            self.$($of)+.$name($($argument),*)
        }
    };
}

pub(crate) use delegate;
