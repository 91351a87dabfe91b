//! What happened to the connection and its planes while something else was measured.

use metaroce_soft::Nic;
use metaroce_soft::core::work::Event;
use serde_json::{Value, json};
use std::cell::RefCell;
use std::io::Write;
use std::time::Instant;

/// Collects events, and prints them if asked to.
pub struct Watch {
    print: bool,
    start: Instant,
    events: RefCell<Vec<Value>>,
}

/// More than this are not kept.
const KEPT: usize = 1000;

impl Watch {
    pub fn new(print: bool) -> Self {
        Self {
            print,
            start: Instant::now(),
            events: RefCell::default(),
        }
    }

    /// Everything is ready to be measured.
    pub fn opened(&self) {
        self.add("opened", None);
    }

    /// Takes the events that the NIC has.
    pub fn look(&self, nic: &Nic) {
        while let Some(event) = nic.poll_event() {
            match event {
                Event::PlaneDown { plane, .. } => self.add("plane_down", Some(plane)),
                Event::PlaneUp { plane, .. } => self.add("plane_up", Some(plane)),
                Event::Closed { reason, .. } => self.add(&format!("closed: {reason:?}"), None),
                Event::StreamFailed { stream, status, .. } => {
                    self.add(&format!("stream {stream} failed: {status:?}"), None);
                }
                Event::Connected { .. } | Event::Completion(_) => {}
            }
        }
    }

    /// All events so far.
    pub fn into_events(self, nic: &Nic) -> Vec<Value> {
        self.look(nic);
        self.events.into_inner()
    }

    fn add(&self, what: &str, plane: Option<u8>) {
        let mut event = json!({ "event": what, "seconds": self.start.elapsed().as_secs_f64() });
        if let Some(plane) = plane {
            event["plane"] = json!(plane);
        }
        if self.print {
            // Nobody may be listening.
            let _ = writeln!(std::io::stderr(), "{event}");
        }
        let mut events = self.events.borrow_mut();
        if events.len() < KEPT {
            events.push(event);
        }
    }
}
