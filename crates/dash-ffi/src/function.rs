//! `ScalarFunction`: an SQL function in safe Rust.
//!
//! A function's callback gets no pointer from SQLite from which a slot could be read without
//! SQLite's own routines, and those are in the slot. So each slot has an instance of the trampoline
//! of its own.

use crate::code::Code;
use crate::connection::ConnectionRef;
use crate::error::{Error, Result, remember};
use crate::guard::guarded;
use crate::slot::{MAX_SLOTS, Slot};
use crate::sys::{self, RawValue, ScalarCall};
use crate::value::Value;
use core::ffi::{CStr, c_int, c_void};

/// What SQLite may assume of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct FunctionFlags(i32);

impl FunctionFlags {
    /// `SQLITE_INNOCUOUS`: it only reads; views and triggers may call it even in a schema of
    /// doubtful origin.
    pub const INNOCUOUS: Self = Self(0x0020_0000);
    /// `SQLITE_DIRECTONLY`: it acts; only SQL that the application itself states may call it.
    pub const DIRECTONLY: Self = Self(0x0008_0000);
    /// `SQLITE_DETERMINISTIC`: the same arguments give the same result, for ever.
    pub const DETERMINISTIC: Self = Self(0x0800);

    /// These flags and those of `other`.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// An SQL function.
#[derive(Clone, Copy)]
pub struct ScalarFunction {
    /// Its name.
    pub name: &'static CStr,
    /// The fewest arguments it takes.
    pub min_args: u8,
    /// The most arguments it takes.
    pub max_args: u8,
    /// What SQLite may assume.
    pub flags: FunctionFlags,
    /// What it does. The message of an error is the text of the statement's error.
    pub call: fn(&mut Context<'_>) -> Result<Value>,
}

/// One call of a function.
pub struct Context<'a> {
    connection: ConnectionRef<'a>,
    arguments: Vec<Value>,
}

impl<'a> Context<'a> {
    /// The arguments.
    #[must_use]
    pub fn args(&self) -> &[Value] {
        &self.arguments
    }

    /// The connection that runs the statement.
    #[must_use]
    pub fn connection(&self) -> &ConnectionRef<'a> {
        &self.connection
    }
}

impl ScalarFunction {
    /// Adds the function to a connection.
    ///
    /// # Errors
    ///
    /// SQLite's own code.
    pub(crate) fn register(&'static self, connection: &ConnectionRef<'_>) -> Result<()> {
        let slot = connection.slot;
        let call = CALLS.get(slot.index).copied();
        let flags = c_int::from(sys::UTF8) | self.flags.0;
        let this: *const Self = self;
        for arguments in self.min_args..=self.max_args {
            // SAFETY: an open connection, a C string, a function that is there for ever as user
            // data, and the trampoline of this slot, which expects it.
            let code = unsafe {
                (slot.api.create_function_v2)(
                    connection.as_ptr(),
                    self.name.as_ptr(),
                    c_int::from(arguments),
                    flags,
                    this.cast_mut().cast::<c_void>(),
                    call,
                    None,
                    None,
                    None,
                )
            };
            // While a statement runs, as it does where SQL loads the extension, no function can be
            // put in another's place: it is there already.
            let added = Error::check(code).or_else(|error| match error.code.primary() {
                Code::BUSY => Ok(()),
                _ => Err(error),
            });
            added.map_err(|error| {
                let message = format!("{}: {}", self.name.to_string_lossy(), error.code);
                Error::new(error.code, message)
            })?;
        }
        Ok(())
    }
}

/// The trampoline of each slot.
static CALLS: [ScalarCall; MAX_SLOTS] = [
    x_func::<0>,
    x_func::<1>,
    x_func::<2>,
    x_func::<3>,
    x_func::<4>,
    x_func::<5>,
    x_func::<6>,
    x_func::<7>,
    x_func::<8>,
    x_func::<9>,
    x_func::<10>,
    x_func::<11>,
    x_func::<12>,
    x_func::<13>,
    x_func::<14>,
    x_func::<15>,
];

unsafe extern "C" fn x_func<const SLOT: usize>(
    context: *mut sys::Context,
    count: c_int,
    values: *mut *mut RawValue,
) {
    // A function is registered only with the trampoline of a slot that exists.
    let Some(slot) = Slot::at(SLOT) else { return };
    // SAFETY: a context that SQLite made for a function of this slot, whose user data is the
    // function.
    let function = unsafe { (slot.api.user_data)(context).cast::<ScalarFunction>().as_ref() };
    let Some(function) = function else { return };
    let call = || {
        // SAFETY: SQLite passes `count` values, all alive during the call, on a connection that
        // this thread has locked.
        let (arguments, connection) = unsafe {
            (
                (0..usize::try_from(count).unwrap_or(0))
                    .map(|n| Value::read(slot.api, *values.add(n)))
                    .collect(),
                ConnectionRef::new((slot.api.context_db_handle)(context), slot),
            )
        };
        let connection = connection.ok_or(Code::MISUSE)?;
        (function.call)(&mut Context { connection, arguments })
    };
    let what = function.name.to_string_lossy();
    let result = guarded(&what, Code::INTERNAL, call, |_| ());
    // SAFETY: SQLite's context, during the call.
    unsafe {
        match result {
            Ok(value) => value.set(slot.api, context),
            Err(error) => fail(slot, context, &error),
        }
    }
}

/// Makes an error the result of a function or a column: message first, for the code alone would set
/// one.
///
/// # Safety
///
/// `context` is what the slot's SQLite passed to a callback which is still running.
pub(crate) unsafe fn fail(slot: &Slot, context: *mut sys::Context, error: &Error) {
    let text = error.to_string();
    if error.message.is_some() {
        remember(&text);
    }
    let length = c_int::try_from(text.len()).unwrap_or(c_int::MAX);
    // SAFETY: a live context, as the caller states; the text has at least `length` bytes and is
    // copied.
    unsafe {
        (slot.api.result_error)(context, text.as_ptr().cast(), length);
        (slot.api.result_error_code)(context, error.code.raw());
    }
}
