//! A worker that is a thread of this process.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::order::{Handle, Order, gone, work};
use crate::failure::Result;
use crate::interleave::Timed;
use crate::row::Row;
use crate::workload::{Worker, Workload};

/// The thread.
pub struct Thread {
    orders: Option<Sender<Order>>,
    results: Receiver<Result<Timed>>,
    handle: Option<JoinHandle<()>>,
}

impl Thread {
    /// Starts it; it has its connection when this returns.
    pub fn start(
        workload: Arc<dyn Workload>,
        row: &'static Row,
        path: &Path,
        index: usize,
        of: usize,
    ) -> Result<Self> {
        let (orders, inbox) = channel();
        let (outbox, results) = channel();
        let path = path.to_owned();
        let handle = std::thread::spawn(move || {
            let outcome = serve(&*workload, row, &path, (index, of), &inbox, &outbox);
            if let Err(failure) = outcome {
                // Nobody listens any more if this can't be told.
                let _ = outbox.send(Err(failure));
            }
        });
        let mut made = Self { orders: Some(orders), results, handle: Some(handle) };
        made.result()?;
        Ok(made)
    }
}

fn serve(
    workload: &dyn Workload,
    row: &'static Row,
    path: &Path,
    (index, of): (usize, usize),
    inbox: &Receiver<Order>,
    outbox: &Sender<Result<Timed>>,
) -> Result<()> {
    let db = workload.stays_open().then(|| row.open(path)).transpose()?;
    let mut session = workload.session(&Worker { row, path, db: db.as_ref(), index, of })?;
    let mut answer = Ok(Timed::default());
    while outbox.send(answer).is_ok() {
        let Ok(order) = inbox.recv() else { break };
        answer = work(&mut *session, order);
    }
    Ok(())
}

impl Handle for Thread {
    fn order(&mut self, order: Order) -> Result<()> {
        let orders = self.orders.as_ref().ok_or_else(gone)?;
        orders.send(order).map_err(|_| gone())
    }

    fn result(&mut self) -> Result<Timed> {
        self.results.recv().map_err(|_| gone())?
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(handle) = self.handle.take() {
            drop(handle.join());
        }
    }
}
