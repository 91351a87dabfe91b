//! Which ports lead to which host: all shortest routes over the links that are up.

use std::collections::{BTreeMap, VecDeque};

use crate::packet::HostId;
use crate::port::{Node, Port, PortId};
use crate::switch::{NO_GROUP, Routes};

/// The routes of every switch. Hosts that hang on the same switches share the routes elsewhere.
///
/// # Panics
/// If a switch has more than 65,534 different groups of ports.
pub(crate) fn compute(ports: &[Port], hosts: usize, switches: usize) -> Vec<Routes> {
    let mut into: Vec<Vec<(u32, PortId)>> = vec![Vec::new(); switches];
    let mut attached: Vec<Vec<(u32, PortId)>> = vec![Vec::new(); hosts];
    for (id, port) in ports.iter().enumerate().filter(|(_, port)| port.routed) {
        let Node::Switch(from) = port.owner else {
            continue;
        };
        match port.to {
            Node::Switch(to) => into[to as usize].push((from, id as PortId)),
            Node::Host(host) => attached[host as usize].push((from, id as PortId)),
        }
    }
    let mut alike: BTreeMap<Vec<u32>, Vec<HostId>> = BTreeMap::new();
    for (host, at) in attached.iter().enumerate() {
        let mut at: Vec<u32> = at.iter().map(|&(switch, _)| switch).collect();
        at.sort_unstable();
        at.dedup();
        alike.entry(at).or_default().push(host as HostId);
    }
    let mut routes: Vec<Routes> = vec![(vec![NO_GROUP; hosts], Vec::new()); switches];
    let mut known: Vec<BTreeMap<Vec<PortId>, u16>> = vec![BTreeMap::new(); switches];
    let mut add = |switch: u32, hosts: &[HostId], group: Vec<PortId>| {
        let (table, groups) = &mut routes[switch as usize];
        let index = *known[switch as usize]
            .entry(group)
            .or_insert_with_key(|group| {
                groups.push(group.clone());
                u16::try_from(groups.len() - 1)
                    .ok()
                    .filter(|&index| index != NO_GROUP)
                    .unwrap_or_else(|| panic!("switch {switch} has too many groups of ports"))
            });
        for &host in hosts {
            table[host as usize] = index;
        }
    };
    for (at, alike) in &alike {
        for &host in alike {
            for &switch in at {
                let direct = attached[host as usize]
                    .iter()
                    .filter(|&&(owner, _)| owner == switch)
                    .map(|&(_, port)| port)
                    .collect();
                add(switch, &[host], direct);
            }
        }
        let mut distance = vec![u32::MAX; switches];
        let mut ways: Vec<Vec<PortId>> = vec![Vec::new(); switches];
        let mut queue: VecDeque<u32> = at.iter().copied().collect();
        for &switch in at {
            distance[switch as usize] = 0;
        }
        while let Some(to) = queue.pop_front() {
            let next = distance[to as usize] + 1;
            for &(from, port) in &into[to as usize] {
                if distance[from as usize] == u32::MAX {
                    distance[from as usize] = next;
                    queue.push_back(from);
                }
                if distance[from as usize] == next {
                    ways[from as usize].push(port);
                }
            }
        }
        for (switch, mut group) in ways.into_iter().enumerate() {
            if !group.is_empty() {
                group.sort_unstable();
                add(switch as u32, alike, group);
            }
        }
    }
    routes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::port::PortConfig;

    /// Two leaves, two spines, a host on each leaf. Ports in the order given.
    fn square() -> Vec<Port> {
        let (s, h) = (Node::Switch, Node::Host);
        [
            (s(0), h(0)),
            (s(1), h(1)),
            (s(0), s(2)),
            (s(0), s(3)),
            (s(1), s(2)),
            (s(1), s(3)),
            (s(2), s(0)),
            (s(2), s(1)),
            (s(3), s(0)),
            (s(3), s(1)),
        ]
        .into_iter()
        .enumerate()
        .map(|(i, (from, to))| Port::new(PortConfig::REFERENCE, from, to, 0, 1, i as u64))
        .collect()
    }

    fn ways(ports: &[Port], switch: usize, host: usize) -> Vec<PortId> {
        let routes = compute(ports, 2, 4);
        let (table, groups) = &routes[switch];
        match table[host] {
            NO_GROUP => Vec::new(),
            group => groups[usize::from(group)].clone(),
        }
    }

    #[test]
    fn all_shortest_routes_and_no_others() {
        let ports = square();
        assert_eq!(ways(&ports, 0, 0), [0]);
        assert_eq!(ways(&ports, 0, 1), [2, 3]);
        assert_eq!(ways(&ports, 2, 0), [6]);
        assert_eq!(ways(&ports, 2, 1), [7]);
    }

    #[test]
    fn a_dead_link_far_away_is_avoided_at_the_source() {
        let mut ports = square();
        ports[9].routed = false;
        assert_eq!(ways(&ports, 0, 1), [2]);
        // The long way round is the only one left for the spine itself.
        assert_eq!(ways(&ports, 3, 1), [8]);
        ports[7].routed = false;
        assert_eq!(ways(&ports, 0, 1), [0; 0]);
    }
}
