//! A workload as a graph: tasks, and what each waits for.
//!
//! Everything that hosts do is one of two tasks: a *transfer* of bytes from one host to another, or a *pause* of one host
//! (computing, or only a join). A task starts when all that it waits for has happened **at its own host**: a pause of that host
//! has ended, a transfer to it was delivered, or a transfer from it was acknowledged. So a graph can be run by real hosts, which
//! know nothing else.

use crate::packet::HostId;
use crate::time::Time;

/// The index of a task.
pub type TaskId = u32;

/// What a task does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Bytes go from one host to another.
    Transfer {
        /// The sender, where the task starts.
        from: HostId,
        /// The receiver.
        to: HostId,
        /// How many, at least 1.
        bytes: u64,
        /// Transfers of one flow between two hosts are delivered in order; see [`crate::node::Message::flow`].
        flow: u32,
    },
    /// A host is busy for a while, or (a span of zero) joins several dependencies into one.
    Pause {
        /// The host.
        host: HostId,
        /// How long.
        span: Time,
    },
}

/// What a task waits for, besides its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    /// A pause has ended, or a transfer was delivered (seen by its receiver).
    Done(TaskId),
    /// A transfer was acknowledged (seen by its sender).
    Acknowledged(TaskId),
}

/// A task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Task {
    /// What it does.
    pub action: Action,
    /// It does not start before this time after the start of the run.
    pub not_before: Time,
    /// The collective operation, training step or request that it belongs to; an index into [`Program::groups`].
    pub group: u32,
    first_dependency: u32,
    dependencies: u32,
}

/// Several tasks that make one operation, reported as one (a collective, an iteration, a request).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// A name for reports.
    pub name: String,
    /// Bytes for which algorithm bandwidth is reckoned (the size of the buffer of each rank); 0: none.
    pub bytes: u64,
    /// Bus bandwidth is this ratio (numerator, denominator) times algorithm bandwidth.
    pub bus_factor: (u64, u64),
}

/// Why a program could not be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ProgramError {
    /// A host that is not there.
    Host(HostId),
    /// A transfer of no bytes.
    NoBytes,
    /// A transfer to its own host.
    ToItself(HostId),
    /// A dependency on a task that is not (yet) there: the order of tasks is one in which they can be done.
    Unknown(TaskId),
    /// A dependency on something that the host of the task cannot see.
    Elsewhere {
        /// The host of the task.
        host: HostId,
        /// What it was to wait for.
        after: TaskId,
    },
    /// More tasks or dependencies than fit into 32 bits.
    TooLarge,
}

impl core::fmt::Display for ProgramError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Host(host) => write!(f, "there is no host {host}"),
            Self::NoBytes => f.write_str("a transfer needs at least one byte"),
            Self::ToItself(host) => write!(f, "host {host} sends to itself"),
            Self::Unknown(task) => write!(
                f,
                "a task waits for task {task}, which does not come before it"
            ),
            Self::Elsewhere { host, after } => {
                write!(f, "host {host} cannot see the end of task {after}")
            }
            Self::TooLarge => f.write_str("too many tasks or dependencies"),
        }
    }
}

impl core::error::Error for ProgramError {}

/// A workload.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    hosts: u32,
    tasks: Vec<Task>,
    dependencies: Vec<After>,
    groups: Vec<Group>,
}

impl Program {
    /// Nothing to do, for this many hosts; tasks belong to the group that was begun last.
    #[must_use]
    pub fn new(hosts: u32) -> Self {
        Self {
            hosts,
            ..Self::default()
        }
    }

    /// How many hosts it is for.
    #[must_use]
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// All tasks, in an order in which they can be done.
    #[must_use]
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// The groups of tasks.
    #[must_use]
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// What a task waits for.
    #[must_use]
    pub fn dependencies(&self, task: &Task) -> &[After] {
        let first = task.first_dependency as usize;
        &self.dependencies[first..first + task.dependencies as usize]
    }

    /// Begins a group: tasks added from now on belong to it.
    pub fn begin_group(&mut self, group: Group) -> u32 {
        self.groups.push(group);
        self.groups.len() as u32 - 1
    }

    /// Adds a task that starts after all of `after`, and not before a time.
    ///
    /// # Errors
    /// If the task makes no sense; then nothing was added.
    pub fn add(
        &mut self,
        action: Action,
        not_before: Time,
        after: &[After],
    ) -> Result<TaskId, ProgramError> {
        let host = match action {
            Action::Transfer {
                from, to, bytes, ..
            } => {
                if let Some(&host) = [from, to].iter().find(|&&host| host >= self.hosts) {
                    return Err(ProgramError::Host(host));
                }
                if from == to {
                    return Err(ProgramError::ToItself(from));
                }
                if bytes == 0 {
                    return Err(ProgramError::NoBytes);
                }
                from
            }
            Action::Pause { host, .. } if host >= self.hosts => {
                return Err(ProgramError::Host(host));
            }
            Action::Pause { host, .. } => host,
        };
        for &dependency in after {
            let (After::Done(id) | After::Acknowledged(id)) = dependency;
            let task = self
                .tasks
                .get(id as usize)
                .ok_or(ProgramError::Unknown(id))?;
            let seen = match (task.action, dependency) {
                (Action::Transfer { to, .. }, After::Done(_)) => Some(to),
                (Action::Transfer { from, .. }, After::Acknowledged(_)) => Some(from),
                (Action::Pause { host, .. }, After::Done(_)) => Some(host),
                (Action::Pause { .. }, After::Acknowledged(_)) => None,
            };
            if seen != Some(host) {
                return Err(ProgramError::Elsewhere { host, after: id });
            }
        }
        let fits = |length: usize| u32::try_from(length).map_err(|_| ProgramError::TooLarge);
        let id = fits(self.tasks.len())?;
        let first_dependency = fits(self.dependencies.len())?;
        fits(self.dependencies.len() + after.len())?;
        if self.groups.is_empty() {
            self.groups.push(Group {
                name: String::from("all"),
                bytes: 0,
                bus_factor: (1, 1),
            });
        }
        self.dependencies.extend_from_slice(after);
        self.tasks.push(Task {
            action,
            not_before,
            group: self.groups.len() as u32 - 1,
            first_dependency,
            dependencies: after.len() as u32,
        });
        Ok(id)
    }

    /// Every pair of hosts between which bytes go, each once, in the order of senders.
    #[must_use]
    pub fn pairs(&self) -> Vec<(HostId, HostId)> {
        let mut pairs: Vec<_> = self
            .tasks
            .iter()
            .filter_map(|task| match task.action {
                Action::Transfer { from, to, .. } => Some((from, to)),
                Action::Pause { .. } => None,
            })
            .collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn transfer(from: HostId, to: HostId) -> Action {
        Action::Transfer {
            from,
            to,
            bytes: 1,
            flow: 0,
        }
    }

    #[test]
    fn only_what_a_host_can_see_is_waited_for() {
        let mut program = Program::new(3);
        let pause = Action::Pause {
            host: 1,
            span: Time::ZERO,
        };
        let sent = program.add(transfer(0, 1), Time::ZERO, &[]).unwrap();
        assert!(
            program
                .add(transfer(1, 2), Time::ZERO, &[After::Done(sent)])
                .is_ok()
        );
        assert!(
            program
                .add(transfer(0, 2), Time::ZERO, &[After::Acknowledged(sent)])
                .is_ok()
        );
        let join = program
            .add(pause, Time::ZERO, &[After::Done(sent)])
            .unwrap();
        let elsewhere = |after| Err(ProgramError::Elsewhere { host: 2, after });
        assert_eq!(
            program.add(transfer(2, 1), Time::ZERO, &[After::Done(sent)]),
            elsewhere(sent)
        );
        assert_eq!(
            program.add(transfer(2, 1), Time::ZERO, &[After::Done(join)]),
            elsewhere(join)
        );
        assert_eq!(
            program.add(transfer(2, 1), Time::ZERO, &[After::Done(9)]),
            Err(ProgramError::Unknown(9))
        );
        assert_eq!(
            program.add(transfer(2, 3), Time::ZERO, &[]),
            Err(ProgramError::Host(3))
        );
        assert_eq!(
            program.add(transfer(2, 2), Time::ZERO, &[]),
            Err(ProgramError::ToItself(2))
        );
        assert_eq!(program.tasks().len(), 4);
        assert_eq!(program.pairs(), [(0, 1), (0, 2), (1, 2)]);
    }
}
