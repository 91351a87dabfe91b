//! A link in memory whose buffers are used again, so that no case pays for an allocator.

use std::collections::VecDeque;

/// Frames on their way in one direction.
#[derive(Default)]
pub struct Link {
    frames: VecDeque<Frame>,
    spare: Vec<Vec<u8>>,
}

/// A buffer and how much of it is the frame.
pub struct Frame {
    buffer: Vec<u8>,
    length: usize,
}

impl Frame {
    /// The frame's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.length]
    }
}

impl Link {
    /// Sends a frame of this length that `fill` writes.
    pub fn send<R>(&mut self, length: usize, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut buffer = self.spare.pop().unwrap_or_default();
        if buffer.len() < length {
            buffer.resize(length, 0);
        }
        let result = fill(&mut buffer[..length]);
        self.frames.push_back(Frame { buffer, length });
        result
    }

    /// The frame that was sent first.
    pub fn receive(&mut self) -> Option<Frame> {
        self.frames.pop_front()
    }

    /// Gives a frame's buffer back.
    pub fn recycle(&mut self, frame: Frame) {
        self.spare.push(frame.buffer);
    }
}
