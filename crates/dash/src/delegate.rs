//! Methods of [`File`](dash_ffi::File) that another file answers, which is in a field.

/// `delegate!(file: read size)` writes `read` and `size`, which ask `self.file`.
macro_rules! delegate {
    (read $field:ident) => {
        delegate!($field: read(buffer: &mut [u8], offset: u64) -> Result<usize>);
    };
    (write $field:ident) => { delegate!($field: write(data: &[u8], offset: u64) -> Result<()>); };
    (truncate $field:ident) => { delegate!($field: truncate(size: u64) -> Result<()>); };
    (sync $field:ident) => { delegate!($field: sync(flags: dash_ffi::SyncFlags) -> Result<()>); };
    (size $field:ident) => { delegate!($field: size() -> Result<u64>); };
    (lock $field:ident) => { delegate!($field: lock(level: dash_ffi::LockLevel) -> Result<()>); };
    (unlock $field:ident) => {
        delegate!($field: unlock(level: dash_ffi::LockLevel) -> Result<()>);
    };
    (check_reserved_lock $field:ident) => {
        delegate!($field: check_reserved_lock() -> Result<bool>);
    };
    (file_control $field:ident) => {
        delegate!($field: file_control(control: dash_ffi::FileControl<'_>) -> Result<dash_ffi::Handled>);
    };
    (sector_size $field:ident) => { delegate!($field: sector_size() -> u32); };
    (device_characteristics $field:ident) => {
        delegate!($field: device_characteristics() -> dash_ffi::DeviceCharacteristics);
    };
    (shm_map $field:ident) => {
        delegate!($field: shm_map(region: usize, size: usize, extend: bool) -> Result<dash_ffi::ShmMapping>);
    };
    (shm_lock $field:ident) => {
        delegate!($field: shm_lock(slot: usize, count: usize, lock: dash_ffi::ShmLock) -> Result<()>);
    };
    (shm_barrier $field:ident) => { delegate!($field: shm_barrier() -> ()); };
    (shm_unmap $field:ident) => { delegate!($field: shm_unmap(delete: bool) -> Result<()>); };
    (fetch $field:ident) => {
        delegate!($field: fetch(offset: u64, amount: usize) -> Result<Option<dash_ffi::PagePointer>>);
    };
    (unfetch $field:ident) => {
        delegate!($field: unfetch(offset: u64, page: Option<dash_ffi::PagePointer>) -> Result<()>);
    };
    ($field:ident: $($method:ident)+) => {
        $(delegate!($method $field);)+
    };
    ($field:ident: $name:ident($($argument:ident: $of:ty),*) -> $answer:ty) => {
        fn $name(&mut self $(, $argument: $of)*) -> $answer {
            self.$field.$name($($argument),*)
        }
    };
}

pub(crate) use delegate;
